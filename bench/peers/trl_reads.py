"""What TRL makes of our labels and of our Parquet; in an environment of its own (requirements-trl.txt).

    python bench/peers/trl_reads.py masks ../shared/tokenizers/qwen2
    python bench/peers/trl_reads.py train EXPORTED/data/train-00000.parquet --tokenizer ../shared/tokenizers/minimind

`masks`: TRL ships the templates of well-known models and, for each, one that it has patched with generation blocks. The
mask that transformers makes from the patched one is compared with ours, from the patched one and, where it renders the
same text, from the original one, which has no blocks. Two things may differ, and are told: a patched template may have
the model learn a part of what the generation prompt says already, and what follows an end token (a new line, the end
of the conversation). `train`: `datasets` loads the file and SFTTrainer trains on it as it is; the first loss must be
that of every sequence by itself. Each exits with 1 where something else differs.
"""

import argparse
import datetime
import json
import re
import sys
import tempfile
from collections import Counter
from itertools import takewhile
from pathlib import Path

import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer, chat_template_utils

MARKERS = re.compile(
    r"<\|[A-Za-z_ ]+\|>|<｜[^｜]+｜>|<[a-z]+_of_[a-z]+>|\[gMASK\]|<sop>|</?(?:think|tool_call|tool_response)>"
)
NOT_SPECIAL = re.compile(r"</?(think|tool_)")
ENDS = {
    "deepseek": "<｜end▁of▁sentence｜>", "llama3": "<|eot_id|>", "phi3": "<|endoftext|>",
    "cohere": "<|END_OF_TURN_TOKEN|>",
}  # fmt: skip
IMAGES = ("vl", "idefics", "llava", "smolvlm", "diffusion", "muse")
"""Templates of models that see pictures want contents in parts, which our rows do not have."""

CALL = [{"type": "function", "function": {"name": "f", "arguments": {"x": "é"}}}]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
          "properties": {"x": {"type": "string", "description": "x"}}, "required": ["x"]}}}]  # fmt: skip


def turns(*contents: str, system: str = "") -> list[dict]:
    roles = ("user", "assistant") * len(contents)
    first = [{"role": "system", "content": system}] if system else []
    return first + [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


ROWS = {
    "one answer": (turns("What is 2 * 3?", "It is 6."), None),
    "many turns": (turns("a", "b", "c", "d e f\n\n1. x", "g", "你好，世界"), None),
    "system": (turns("a", "b", "c", "d", system="Be kind."), None),
    "spaces around": (turns("a ", " b\n", "\nc", "d  "), None),
    "a thought": ([*turns("a"), {"role": "assistant", "content": "b", "reasoning_content": "hm"}], None),
    "tools": ([*turns("q"), {"role": "assistant", "content": "", "tool_calls": CALL},
               {"role": "tool", "name": "f", "content": "42"}, {"role": "assistant", "content": "It is 42."}], TOOLS),
}  # fmt: skip


def pairs() -> dict[str, tuple[str, str]]:
    """Original and patched template by model."""
    found, suffix = {}, "_training_chat_template"
    for name in sorted(n for n in vars(chat_template_utils) if n.endswith(suffix)):
        model = name.removesuffix(suffix)
        if isinstance(vars(chat_template_utils)[name], str) and not any(kind in model for kind in IMAGES):
            original = getattr(chat_template_utils, f"{model}_chat_template")
            found[model] = (original, getattr(chat_template_utils, name))
    return found


def folder(base: Path, model: str, template: str, into: Path) -> Path:
    """The tokenizer with the template's markers as added tokens."""
    spec = json.loads((base / "tokenizer.json").read_bytes())
    end = next((e for start, e in ENDS.items() if model.startswith(start)), "<|im_end|>")
    known = {t["content"] for t in spec["added_tokens"]}
    number = max([t["id"] for t in spec["added_tokens"]] + list(spec["model"]["vocab"].values())) + 1
    for content in sorted({*MARKERS.findall(template), "<s>", end} - known):
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        token = {"id": number, "content": content, "special": not NOT_SPECIAL.match(content)}
        spec["added_tokens"].append(token | flags)
        number += 1
    into.mkdir()
    (into / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    settings = {"bos_token": "<s>", "eos_token": end, "chat_template": template}
    (into / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return into


def theirs(tokenizer: PreTrainedTokenizerFast, messages: list[dict], tools: list | None) -> tuple[list, list]:
    made = tokenizer.apply_chat_template(messages, tools, return_dict=True, return_assistant_tokens_mask=True)
    return made["input_ids"], made["assistant_masks"]


def ours(tokenizer, messages: list[dict], tools: list | None) -> tuple[list, list]:
    from datakit.pack.labels import Labeller

    row = Labeller(tokenizer).label(messages, tools)
    encoding = tokenizer.encode([row.text])[0]
    return encoding.ids, [int(any(a <= start < b for a, b in row.labels)) for start, _ in encoding.offsets]


def verdict(expected: tuple[list, list], tokenizer, messages: list[dict], tools: list | None) -> str:
    from datakit.pack.marks import RenderError

    try:
        found = ours(tokenizer, messages, tools)
    except RenderError as e:
        return e.reason
    if found[0] != expected[0]:
        return "other text"
    if found == expected:
        return "equal"
    ids, mask = found
    less = {k for k, (a, b) in enumerate(zip(mask, expected[1], strict=True)) if a < b}
    behind = {k for k in less if mask[k - 1] and not tokenizer.decode([ids[k]]).strip()}
    behind |= {k for k in less if k == len(ids) - 1 and ids[k] == tokenizer.eos_id}  # of the conversation, not a turn
    asked = [tokenizer.probe.answer_header]
    learnt = [k for k in range(1, len(mask)) if mask[k] and k - 1 in less]
    runs = [[*takewhile(less.__contains__, range(k - 1, 0, -1))][::-1] for k in learnt]
    said = (run for run in runs if any(tokenizer.decode([ids[k] for k in run]) in prompt for prompt in asked))
    header = {k for run in said for k in run}
    if mask == [b and k not in less for k, b in enumerate(expected[1])] and less <= behind | header:
        return "equal but for " + " and ".join(["header"] * bool(header) + ["what follows the end"] * bool(behind))
    more = [tokenizer.token(i) for i, a, b in zip(ids, mask, expected[1], strict=True) if a > b]
    fewer = [tokenizer.token(ids[k]) for k in sorted(less - behind - header)]
    return f"DIFFERENT: ours learns also {more}, not {fewer}"


def masks(base: Path) -> int:
    from datakit.pack import chat
    from datakit.pack.chat import ChatTokenizer

    chat.TODAY = datetime.datetime.now()  # theirs writes the day into some prompts
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for model, (original, patched) in pairs().items():
            made = folder(base, model, original + patched, Path(scratch) / f"{model}-all")
            reference = PreTrainedTokenizerFast.from_pretrained(made, chat_template=patched)
            sides = {}
            for side, template in (("patched", patched), ("original", original)):
                (made / f"{side}.jinja").write_text(template, encoding="utf-8")
                sides[side] = ChatTokenizer.load(made, str(made / f"{side}.jinja"))
            for name, (messages, tools) in ROWS.items():
                try:
                    expected = theirs(reference, messages, tools)
                except Exception as e:  # a template refuses such messages in its own way
                    counts["refused by the template"] += 1
                    print(f"{model:24} {name:14} refused: {str(e)[:60]}")
                    continue
                for side, tokenizer in sides.items():
                    said = verdict(expected, tokenizer, messages, tools)
                    counts[f"{side}: {said.partition(':')[0]}"] += 1
                    if not said.startswith("equal"):
                        print(f"{model:24} {name:14} {side}: {said}")
    print("\n".join(f"{count:4} {what}" for what, count in sorted(counts.items())))
    return int(any("DIFFERENT" in what for what in counts))


def train(parquet: Path, tokenizer: Path, steps: int) -> int:
    torch.manual_seed(0)
    rows = load_dataset("parquet", data_files=str(parquet), split="train")
    print(rows)
    reader = PreTrainedTokenizerFast.from_pretrained(tokenizer)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = AutoModelForCausalLM.from_config(LlamaConfig(vocab_size=len(reader), **shape))
    alone, count = 0.0, 0
    for row in rows.select(range(4)):
        at = 0
        for length in row["seq_lens"]:
            ids, labels = (torch.tensor(row[c][at : at + length])[None] for c in ("input_ids", "labels"))
            learnt = int((labels[:, 1:] != -100).sum())
            if learnt:
                with torch.no_grad():
                    alone += model(input_ids=ids, labels=labels).loss.item() * learnt
            at, count = at + length, count + learnt
    config = SFTConfig(
        output_dir=tempfile.mkdtemp(), padding_free=True, per_device_train_batch_size=4, max_steps=steps,
        learning_rate=1e-3, logging_steps=1, report_to=[], use_cpu=True, bf16=False, save_strategy="no",
        gradient_checkpointing=False, max_length=None, shuffle_dataset=False, train_sampling_strategy="sequential",
    )  # fmt: skip
    trainer = SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=reader)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print(f"every sequence by itself {alone / count:.4f}, TRL's first step {losses[0]:.4f}, its last {losses[-1]:.4f}")
    return int(abs(losses[0] - alone / count) > 1e-3 or losses[-1] >= losses[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("masks").add_argument("tokenizer", type=Path, help="a folder with a tokenizer.json")
    training = commands.add_parser("train")
    training.add_argument("parquet", type=Path)
    training.add_argument("--tokenizer", type=Path, required=True)
    training.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    if args.command == "masks":
        return masks(args.tokenizer)
    return train(args.parquet, args.tokenizer, args.steps)


if __name__ == "__main__":
    sys.exit(main())
