"""Suites: log-probabilities of continuations by hand, the published layouts, answers that are generated."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from datakit.errors import InputError
from datakit.pack.chat import ChatTokenizer
from train import eval as evaluation
from train.attention import Segments, masked_attention
from train.batching import Token, prompt_ids
from train.hf import write_model
from train.model import PRESETS, CausalLM
from train.suites import Item, Suite, log_probs_of, read_suites, suite_score

ARC = {"question": "Which is a cat?", "choices": {"text": ["mat", "cat"], "label": ["A", "B"]}, "answerKey": "B"}
HELLASWAG = {
    "activity_label": "Sitting", "ctx_a": "the cat [header] sat", "ctx_b": "she", "endings": ["on [x] it", "off"],
    "label": "1",
}  # fmt: skip
MMLU = {"question": "two?", "choices": ["1", "2", "3", "4"], "answer": 1, "subject": "high_school_maths"}
CEVAL = {"question": "二加二", "A": "三", "B": "四", "C": "五", "D": "六", "answer": "B"}
GSM8K = {"question": "How many?", "answer": "two and two <<2+2=4>>4\n#### 1,004"}


def file(folder: Path, name: str, *rows: dict) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_layouts_become_the_harness_prompts(tmp_path: Path) -> None:
    found = {n: Suite.read(file(tmp_path, n, r)) for n, r in (("a", ARC), ("h", HELLASWAG), ("m", MMLU), ("c", CEVAL))}
    items = {name: suite.items[0] for name, suite in found.items()}
    assert items["a"].prompt == "Question: Which is a cat?\nAnswer:"
    assert (items["a"].choices, items["a"].right) == ((" mat", " cat"), 1)
    assert items["h"].prompt == "Sitting: the cat sat She" and items["h"].choices == (" on it", " off")
    head = "The following are multiple choice questions (with answers) about high school maths.\n\n"
    assert items["m"].prompt == f"{head}two?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer:"
    assert (items["m"].choices, items["m"].right) == ((" A", " B", " C", " D"), 1)
    assert items["c"].prompt == "二加二\nA. 三\nB. 四\nC. 五\nD. 六\n答案：" and items["c"].choices[1] == " B"
    gsm = Suite.read(file(tmp_path, "g", GSM8K), 1, file(tmp_path, "s", ARC)).items[0]
    assert gsm.prompt == "Question: Which is a cat?\nAnswer: cat\n\nQuestion: How many?\nAnswer:"
    assert not gsm.choices
    shots = Suite.read(file(tmp_path, "m", MMLU), 1, file(tmp_path, "s", MMLU | {"answer": "C"})).items[0]
    asked = "two?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer:"
    assert shots.prompt == f"{head}{asked} C\n\n{asked}", "the head once, before the examples"


def test_what_is_no_suite_is_refused_by_its_item(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fields text: expected those of arc"):
        Suite.read(file(tmp_path, "x", {"text": "a"}))
    with pytest.raises(InputError, match=r"item 2 lacks its question"):
        Suite.read(file(tmp_path, "y", ARC, {"question": "q"}))
    with pytest.raises(InputError, match=r"item 1 has 2 choices, and none is the answer"):
        Suite.read(file(tmp_path, "z", HELLASWAG | {"label": "-1"}))
    with pytest.raises(InputError, match="has no questions"):
        Suite.read(file(tmp_path, "empty"))
    for name, row in (("m", MMLU | {"answer": ""}), ("c", CEVAL | {"answer": ""}), ("ab", CEVAL | {"answer": "AB"})):
        with pytest.raises(InputError, match=r"item 1 lacks .* its answer"):  # a test split without answers
            Suite.read(file(tmp_path, name, row))
    with pytest.raises(InputError, match="item 1 lacks its question"):
        Suite.read(file(tmp_path, "null", MMLU | {"question": None}))
    with pytest.raises(InputError, match="item 2 is 7; expected a JSON object"):
        Suite.read(file(tmp_path, "seven", ARC, 7))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has 1 questions, and --shots wants 5"):
        Suite.read(file(tmp_path, "m", MMLU), 5, file(tmp_path, "s", ARC))


@pytest.mark.parametrize(
    "row",
    [
        GSM8K | {"answer": None}, GSM8K | {"answer": ""}, GSM8K | {"answer": ["18"]}, GSM8K | {"question": None},
        {"question": "Is it?", "passage": "p", "answer": True}, MMLU | {"answer": True}, MMLU | {"answer": 1.7},
        ARC | {"choices": {"text": ["a", "b", "c"], "label": ["A", "B"]}}, MMLU | {"choices": {"x": "1", "y": "2"}},
    ],
)  # fmt: skip
def test_values_that_are_no_question_or_answer_are_refused(row: dict, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="item 1 lacks its question"):
        Suite.read(file(tmp_path, "x", row))


def test_choices_by_letter_are_choices_and_unread_ones_are_refused(tmp_path: Path) -> None:
    lettered = MMLU | {"choices": dict(zip("ABCD", MMLU["choices"], strict=True)), "answer": " B "}
    found = Suite.read(file(tmp_path, "x", MMLU, lettered, MMLU | {"answer": 1.0}))
    assert found.layout == "mmlu" and found.items[0] == found.items[1] == found.items[2]
    no_b = Suite.read(file(tmp_path, "h", HELLASWAG | {"ctx_b": None, "ctx": "the cat"})).items[0]
    assert no_b.prompt == "Sitting: the cat"
    with pytest.raises(InputError, match="fields question, options, answer: expected those of"):
        Suite.read(file(tmp_path, "pro", {"question": "q", "options": ["a", "b"], "answer": "A"}))


def test_ends_of_lines_within_a_text_end_no_item_and_a_bom_is_read_over(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    for text in (
        json.dumps(row := ARC | {"question": "a\u2028b\x85c"}, ensure_ascii=False),
        json.dumps([row], indent=1),
    ):
        path.write_text(f"\ufeff{text}\n", encoding="utf-8")
        assert [i.prompt for i in Suite.read(path).items] == ["Question: a\u2028b\x85c\nAnswer:"]


@pytest.fixture(scope="module")
def folder(tokenizer_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    model = CausalLM(replace(PRESETS["tiny"], vocab_size=300, num_layers=2, max_positions=96))
    model.init_weights(torch.Generator().manual_seed(0))
    write_model(place, model, tuple(tokenizer_folder.iterdir()), {})
    return place


@torch.no_grad()
def test_continuations_have_the_log_probabilities_of_each_sequence_alone() -> None:
    model = CausalLM(replace(PRESETS["tiny"], vocab_size=50, num_layers=2))
    g = torch.Generator().manual_seed(1)
    pairs = [(torch.randint(0, 50, (n,), generator=g).tolist(), b) for n, b in ((9, 4), (3, 2), (30, 1), (12, 11))]
    found = log_probs_of(model, pairs, "fp32", tokens=32)
    for value, (ids, begin) in zip(found, pairs, strict=True):
        attend = masked_attention(Segments.of([[0, len(ids)]], len(ids)))
        hidden = model(torch.tensor([ids]), torch.arange(len(ids))[None], attend)[0]
        logp = model.lm_head(hidden).log_softmax(-1)
        assert value == pytest.approx(sum(float(logp[i - 1, ids[i]]) for i in range(begin, len(ids))), abs=1e-3)


def test_scores_are_shares_of_right_answers(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    tokenizer, model = ChatTokenizer.load(folder), evaluation.load(folder)[0]
    prompt, choices = "Question: hello\nAnswer:", (" cat", " the mat", " hello")
    one = Suite("s", "arc", [Item(prompt, choices, right=r) for r in range(3)])
    scores = suite_score(model, one, tokenizer, "fp32")
    assert scores.metrics == {"acc": pytest.approx(1 / 3), "acc_norm": pytest.approx(1 / 3)}, "each is right once"
    files = [file(tmp_path, "arc", ARC, ARC), file(tmp_path, "gsm", GSM8K)]
    command = ["--model", str(folder), "--suites", ",".join(map(str, files)), "--suite-tokens", "8", "--json"]
    assert evaluation.main(command) == 0
    found = json.loads(capsys.readouterr().out)["suites"]
    assert found["arc"]["items"] == 2 and found["arc"]["acc"] in (0.0, 1.0) and found["gsm"]["exact"] == 0.0
    (tmp_path / "other").mkdir()
    files = [str(file(tmp_path, "arc", ARC)), str(file(tmp_path / "other", "arc", ARC))]
    assert [suite.name for suite in read_suites(files)] == files, "both are reported"


@pytest.mark.parametrize(
    ("said", "answer", "right"),
    [
        (" so #### 12\n\nQuestion: and #### 99", "#### 12", {"exact", "strict_match", "flexible_extract"}),
        ("#### 1,004. or #### 7", "so\n#### 1,004", {"strict_match"}),
        ("It is $1004.", "9 * 8\n#### 1,004", {"exact", "flexible_extract"}),
        (r"\boxed{12} of 13", "#### 12", {"exact"}),
        ("#### 12.0", "#### 12", {"exact"}),
        ("nothing", "#### 12", set()),
    ],
)
def test_generated_answers_are_read_by_the_rules_of_the_harness(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, answer: str, right: set[str]
) -> None:
    """What follows the next question is no part of the answer."""
    tokenizer, model = ChatTokenizer.load(folder), evaluation.load(folder)[0]
    ids = tokenizer.encode_text(said)
    monkeypatch.setattr("train.batching.stream", lambda m, jobs, slots: ((jobs[0], Token(t)) for t in ids))
    metrics = suite_score(model, Suite("s", "gsm8k", [Item("q", answer=answer)]), tokenizer, "fp32").metrics
    assert {name for name, share in metrics.items() if share} == right and len(metrics) == 3


def test_prompts_begin_with_the_bos_token_that_the_tokenizer_adds(folder: Path, tmp_path: Path) -> None:
    """By its post-processor, as in Llama 3, whatever the settings say (transformers 5); or by its settings."""
    plain = ChatTokenizer.load(folder)
    spec, ids = json.loads(plain.definition), plain.encode_text("hello")
    processor = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}]}
    for after, settings, adds in (
        (None, {}, False), (processor, {}, True), (None, {"add_bos_token": True}, True),
        (processor, {"add_bos_token": False}, True),
    ):  # fmt: skip
        definition = json.dumps(spec | {"post_processor": after}).encode()
        tokenizer = ChatTokenizer(definition, settings | {"bos_token": "<|endoftext|>"}, "", "here")
        assert tokenizer.encode_document("hello") == [*([tokenizer.bos_id] if adds else []), *ids]
        assert prompt_ids(tokenizer, "hello", True, 99, "") == tokenizer.encode_document("hello")
    assert not ChatTokenizer(plain.definition, {"add_bos_token": True}, "", "here").adds_bos
