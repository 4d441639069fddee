"""GRPO on a made task: a tiny model learns to add from rewards alone.

    python bench/grpo.py --out /tmp/grpo

A warm-up (train.sft) teaches the form of an answer, with digits that are random, so that one answer in ten is right.
Then GRPO trains on all sums. Prints the rewards, and the seconds of the wall and of the processor.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # not this folder
from datakit.pack.chat import ChatTokenizer  # noqa: E402
from train.hf import write_model  # noqa: E402
from train.model import PRESETS, CausalLM  # noqa: E402

TEMPLATE = "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"


def start_model(folder: Path) -> None:
    """A model of two layers, with a tokenizer of digits and signs."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = ["<|pad|>", "<|end|>", *"0123456789+=?"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(words[:2])
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "<|end|>", "pad_token": "<|pad|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    files = tuple(folder / name for name in ("tokenizer.json", "tokenizer_config.json"))
    size = ChatTokenizer.load(folder).vocab_size
    model = CausalLM(replace(PRESETS["tiny"], vocab_size=size, num_layers=2, max_positions=64))
    model.init_weights(torch.Generator().manual_seed(0))
    made = folder.parent / "start"
    made.mkdir()
    write_model(made, model, files, {})


def train(objective: str, out: Path, *options: str) -> list[dict]:
    command = [sys.executable, "-m", f"train.{objective}", "--out", str(out), "--report-to", "none"]
    command += ["--save-every", "100000", "--log-every", "20", "--schedule", "constant", *options]
    subprocess.run(command, check=True, cwd=ROOT)
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--digits", type=int, default=5, help="the sums of 0 to this number, without it, modulo 10")
    p.add_argument("--lr", default="5e-4")
    p.add_argument("--group-size", default="12")
    p.add_argument("--kl-beta", default="0.03")
    p.add_argument("--threads", default="1")
    a = p.parse_args()
    out = Path(a.out)
    start_model(out / "tokenizer")
    sums = [(i, j) for i in range(a.digits) for j in range(a.digits)]
    chance = random.Random(0)
    said = [(f"{i}+{j}=", str(chance.randrange(10))) for i, j in sums * 40]
    roles = ("user", "assistant")
    warm = [{"messages": [{"role": r, "content": c} for r, c in zip(roles, turn, strict=True)]} for turn in said]
    (out / "warm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in warm))
    rows = [{"prompt": f"{i}+{j}=", "answer": str((i + j) % 10)} for i, j in sums]
    (out / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    threads = ["--threads", a.threads, "--dtype", "fp32"]
    train("sft", out / "sft", "--data", str(out / "warm.jsonl"), "--tokenizer", str(out / "tokenizer"), "--seq-len",
          "63", "--model", str(out / "start"), "--epochs", "2", "--lr", "1e-3", *threads)  # fmt: skip
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = train("grpo", out / "grpo", "--model", str(out / "sft"), "--prompts", str(out / "sums.jsonl"), "--reward",
                  "exact", "--max-new-tokens", "3", "--group-size", a.group_size, "--batch-rows", "25", "--slots",
                  "64", "--kl-beta", a.kl_beta, "--steps", str(a.steps), "--lr", a.lr, "--shuffle-buffer", "1000000",
                  *threads)  # fmt: skip
    seconds, cpu = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    rewards = [r["reward"] for r in found]
    first = next((i for i in range(4, len(rewards)) if sum(rewards[i - 4 : i + 1]) / 5 >= 0.9), None)
    print(
        f"first reward {rewards[0]:.2f}, last {rewards[-1]:.2f}, {len(rewards)} steps: {seconds:.0f} s, CPU {cpu:.0f} s"
    )
    print(f"0.9 over five steps: {f'at step {first + 1}' if first is not None else 'not reached'}")
    print(" ".join(f"{r:.2f}" for r in rewards[::5]))


if __name__ == "__main__":
    main()
