"""GRPO: the field's loss on the same rollouts, rewards, resumed runs, steps that do not depend on their split."""

from pathlib import Path

import numpy as np
import pytest
import torch

from datakit.errors import ConfigError, InputError, UsageError
from tests.files import write_rows
from tests.train.runs import as_flags, logits, records, small_model
from train import grpo
from train.attention import masked_attention
from train.data import Batch, Row, flat_batch
from train.grpo import RolloutConfig, advantages, is_answer, passes, reward_of, token_losses
from train.hf import write_model
from train.loss import LossConfig, label_log_probs
from train.model import CausalLM
from train.serve.batching import SlotCache

BETA = 0.04


def trls(logp: list, ref: list, adv: torch.Tensor) -> torch.Tensor:
    """GRPOTrainer's loss of one batch, on padded rows."""
    width = max(map(len, logp))
    pad = lambda rows: torch.stack([torch.cat((r, torch.zeros(width - len(r)))) for r in rows])  # noqa: E731
    mask = pad([torch.ones(len(r)) for r in logp])
    new, reference = pad(logp), pad(ref)
    ratio = torch.exp(new - new.detach())  # num_iterations = 1
    loss = -torch.min(ratio * adv[:, None], ratio.clamp(0.8, 1.2) * adv[:, None])
    loss = loss + BETA * (torch.exp(reference - new) - (reference - new) - 1)
    return (loss * mask).sum() / mask.sum()


def test_the_loss_is_trls():
    """GRPOTrainer's `dapo`."""
    g = torch.Generator().manual_seed(0)
    counts = [3, 7, 1, 5]
    new = [torch.randn(n, generator=g).requires_grad_() for n in counts]
    ref = [x.detach() + 0.3 * torch.randn(len(x), generator=g) for x in new]
    adv = advantages(torch.tensor([[1.0, 0.0], [0.5, 2.0]]), True).flatten()
    torch.testing.assert_close(adv, torch.tensor([0.7070, -0.7070, -0.7070, 0.7070]), atol=1e-3, rtol=0)
    row = torch.repeat_interleave(torch.arange(4), torch.tensor(counts))
    loss, _ = token_losses(torch.cat(new), adv[row], torch.cat(ref), BETA)
    found, expected = loss.sum() / 16, trls(new, ref, adv)
    torch.testing.assert_close(found, expected)
    for a, b in zip(torch.autograd.grad(found, new), torch.autograd.grad(expected, new), strict=True):
        torch.testing.assert_close(a, b)


def test_log_probabilities_of_tokens_are_those_of_the_sequence_alone_at_the_temperature():
    model = small_model(vocab_size=50)
    pieces = [(torch.randint(0, 50, (size,)), begin) for size, begin in ((5, 2), (9, 4))]
    rows = [Row(ids.numpy(), np.array([0, len(ids)]), np.arange(begin - 1, len(ids) - 1)) for ids, begin in pieces]
    batch = flat_batch(rows, np.arange(2), 0)
    found = label_log_probs(model, batch, LossConfig(), temperature=0.7)
    expected = []
    for ids, begin in pieces:
        log_probs = (logits(model, ids[None], masked_attention)[0] / 0.7).log_softmax(-1)
        expected.append(log_probs[torch.arange(begin - 1, len(ids) - 1), ids[begin:]])
    torch.testing.assert_close(found, torch.cat(expected), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3 apples and 4 make 7. #### 1,234", "1234"), ("So the Answer is: $-0.5.", "-0.5"), ("\\boxed{42}", "42"),
        ("first 3, then 12", "12"), ("Paris", "paris"), ("答案是 18 个", "so 9 * 2\n#### 18"), ("it is 1200", "1,200"),
        ("#### 1200.0 apples", "#### 1,200"), ("\\boxed{\\text{Monday}}", "Monday"), ("**Answer:** 5 apples", "5"),
        ("so $\\boxed{\\frac{3}{2}}$.", "\\frac{3}{2}"),
        ("\\boxed{( 1,2 )}.", "(1, 2)"), ("####\nMay 3", "May 3"), ("Answer: 0.5?", "0.5"),
        ("\\boxed{1} or rather \\boxed{2}", "2"), ("it costs $18", "18"),
    ],
)  # fmt: skip
def test_an_answer_is_right_in_the_forms_that_people_write(text, wanted):
    assert is_answer(text, wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\\boxed{\\frac{3}{2}}", "\\frac{1}{2}"), ("The answer is 2", "x^2"), ("The answer is x^2", "2"), ("2", "x^2"),
        ("(1, 2)", "(3, 2)"), ("Answer: May 3", "June 3"), ("May 3", "June 3"), ("#### 12", "1200"), ("", "5"),
        ("#### 5 or 6", "5"), ("it is 3/2", "2"), ("The answer is 2*3", "23"), ("version 1.2.3", "3"),
        ("I have no answer to 5", "Monday"), ("The answer is not Monday", "Monday"), ("12 and then 1,5", "5"),
    ],
)  # fmt: skip
def test_a_number_that_is_a_part_of_an_answer_is_not_the_answer(text, wanted):
    assert not is_answer(text, wanted)


def test_the_last_block_of_code_is_judged_by_its_tests():
    said, row = f"Here:\n```python\n{GOOD}```\ndone", {"tests": TEST}
    assert [reward_of("tests")(text, row) for text in (said, said.replace("+", "-"))] == [1.0, 0.0]


@pytest.fixture(scope="module")
def start(tokenizer_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    write_model(folder, small_model(), tuple(tokenizer_folder.iterdir()), {})
    return folder


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    said = ("cat", "mat", "hello cat", "sat")
    return write_rows(tmp_path_factory.mktemp("prompts") / "prompts.jsonl", ({"prompt": f"the {w}"} for w in said))


def run(start: Path, prompts: Path, out: Path, *more: str) -> list[dict]:
    reward = prompts.with_name("first_half.py")
    reward.write_text("import re\n\ndef found(text, row):\n    return float(bool(re.search('[a-m]', text)))\n")
    options = {"max_new_tokens": 6, "group_size": 4, "batch_rows": 2, "lr": 3e-3, "warmup_steps": 0, "dtype": "fp32"}
    named = as_flags(init=start, prompts=prompts, out=out, reward=f"{reward}:found", **options)
    assert grpo.main([*named, *more]) == 0
    return records(out)


def test_a_run_resumes_exactly_with_a_reference(start, prompts, tmp_path):
    options = ["--steps", "4", "--save-every", "2", "--kl-beta", "0.1"]
    whole = run(start, prompts, tmp_path / "whole", *options)
    run(start, prompts, tmp_path / "cut", *options, "--stop-at", "2")
    assert grpo.main(["--resume", "--out", str(tmp_path / "cut")]) == 0
    cut = records(tmp_path / "cut")
    for name in ("loss", "reward", "kl", "answer_tokens"):
        assert [r[name] for r in cut] == [r[name] for r in whole], name
    assert whole[0]["kl"] < 1e-6 < whole[-1]["kl"] and all(r["unended"] > 0.5 for r in whole)
    assert [r["epoch"] for r in whole] == [1, 1, 2, 2] and whole[0]["answer_tokens"] <= 6


def test_answers_are_drawn_and_scored_without_dropout_in_the_precision_of_training(
    start, prompts, tmp_path, monkeypatch
):
    seen, caches, cache = set(), set(), SlotCache.__init__

    def watched(model: CausalLM, batch: Batch, *how: object) -> torch.Tensor:
        seen.add((torch.is_grad_enabled(), model.training))
        return label_log_probs(model, batch, *how)

    def kept(self: SlotCache, *arguments: object) -> None:
        cache(self, *arguments)
        caches.add(self.kv.dtype)

    monkeypatch.setattr(grpo, "label_log_probs", watched)
    monkeypatch.setattr(SlotCache, "__init__", kept)
    lora = ["--lora-rank", "2", "--lora-dropout", "0.5", "--kl-beta", "0.1", "--dtype", "bf16"]
    assert run(start, prompts, tmp_path / "run", "--steps", "2", *lora)[-1]["loss"] != 0
    assert seen == {(False, True), (True, True)} and caches == {torch.bfloat16}


def test_micro_batches_change_nothing(start, prompts, tmp_path):
    one = run(start, prompts, tmp_path / "one", "--steps", "2")
    many = run(start, prompts, tmp_path / "many", "--steps", "2", "--micro-tokens", "40")
    for a, b in zip(one, many, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5) and a["reward"] == b["reward"]
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], abs=1e-4)


GOOD = "def add(a, b):\n    return a + b\n"
"""Code that passes `TEST`, unless what stands before it is stopped."""
TEST = "assert add(2, 3) == 5"


def test_the_process_has_limits_no_environment_and_no_way_around_its_tests(monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    limits = {"AS": 1 << 30, "FSIZE": 1 << 20, "NPROC": 0, "CPU": 5, "CORE": 0}
    asked = "import os, resource\n"
    asked += "".join(f"assert resource.getrlimit(resource.RLIMIT_{n}) == ({v}, {v})\n" for n, v in limits.items())
    own = "assert 'SECRET' not in os.environ and not os.listdir()\nopen('own', 'w').write('x')\n"
    assert passes(asked + own + GOOD, TEST)
    assert not passes("x = bytearray(1 << 30)\n" + GOOD, TEST)
    assert not passes("import os\nwhile True: os.write(2, b'x' * (1 << 20))", TEST, 0.3)
    writes = "for fd in (1, 2, 3): os.write(fd, sys.orig_argv[-1].encode())"
    for cheat in (writes, "sys.exit(0)", "os._exit(0)", "input()"):
        assert not passes(f"import os, sys\n{cheat}", TEST), cheat
    with pytest.raises(UsageError, match="add --allow-code-execution"):
        RolloutConfig(prompts="p", reward=("exact", "tests"))


def test_asserts_and_test_functions_are_run_and_tests_that_test_nothing_are_refused():
    reward = reward_of("tests")
    lines = ["assert add(2, 3) == 5", "assert add(0, 1) == 1"]
    for tests in (lines, "def test_sum():\n    assert add(2, 3) == 5"):
        assert [reward(code, {"tests": tests}) for code in (GOOD, GOOD.replace("+", "-"))] == [1.0, 0.0]
    with pytest.raises(InputError, match="pass without any code, so they test nothing"):
        reward(GOOD, {"tests": "def check(f):\n    assert f(2, 3) == 5"})


@pytest.mark.parametrize(("reward", "row"), [("tests", {"tests": None}), ("exact", {"answer": ""}), ("exact", {})])
def test_a_prompt_without_what_its_reward_needs_is_refused_by_line(start, tmp_path, reward, row):
    whole = {"answer": "1", "tests": TEST}
    prompts = write_rows(tmp_path / "prompts.jsonl", ({"prompt": "the cat"} | more for more in (whole, row)))
    options = ["--prompts", str(prompts), "--init", str(start), "--out", str(tmp_path / "out"), "--reward", reward]
    options += ["--allow-code-execution"] if reward == "tests" else []
    with pytest.raises(InputError, match=r"prompts.jsonl:2: its reward needs a text in the field"):
        grpo.main(options)


FUNCTIONS = """
from __future__ import annotations
import signal
from dataclasses import dataclass

@dataclass
class Parts:
    one: float

def fails(text, row):
    return row["nope"]

def endless(text, row):
    return float("inf")

def silent(text, row):
    pass

def alarm(text, row):
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return Parts(len(text) % 2).one
"""


def test_functions_of_the_user_may_set_a_signal_and_their_errors_are_their_own(start, prompts, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FUNCTIONS)
    for name, error, said in (
        ("fails", KeyError, "nope"),
        ("endless", InputError, "returned inf for the text 'text'"),
        ("silent", InputError, "returned None"),
    ):
        with pytest.raises(error, match=said):
            reward_of(f"{file}:{name}")("text", {})
    with pytest.raises(ConfigError, match=r"mine\.py has no 'absent'"):
        reward_of(f"{file}:absent")
    (record,) = run(start, prompts, tmp_path / "out", "--steps", "1", "--reward", f"{file}:alarm")
    assert 0 <= record["reward"] <= 1
