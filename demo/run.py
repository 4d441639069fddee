"""`make demo`: raw data -> every stage -> packed manifest -> a trained small model, and tables of what happened.

Everything is made on this machine, in out/demo, data/demo and manifests/demo, and needs no network. Exits with 1 if a
ledger does not balance, a planted row was missed, a checksum is wrong, or the loss did not fall.
"""

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Final

from datakit.manifest import data_dir, load
from demo import found, make_data, report

ROOT: Final = Path(__file__).resolve().parents[1]
OUT: Final = Path("out/demo")
MANIFESTS: Final = Path("manifests/demo")
STEPS: Final = 900
BATCH_ROWS: Final = 2
LEARNING_RATE: Final = 8e-3
THREADS: Final = 1
"""With one thread the losses are the same on every machine; a second one gains little at this size."""
PROMPTS: Final = ("What is a token?", "Why is the sky blue?", "什么是词元？")


def main() -> int:
    """Run the demo in the project's folder; returns the exit code."""
    os.chdir(ROOT)
    begin = time.monotonic()
    head("1  Raw data with planted faults")
    plan = make_data.make(OUT)
    print("planted: " + ", ".join(f"{len(v)} {k.replace('_', ' ')}" for k, v in plan.items()))
    head("2  datakit run: ingest, language, dedup, filter, tokenizer, tokenize, pack")
    call("datakit", "run", "--dataset", "demo")
    head("3  datakit verify, explain, and pack once more for plain text")
    call("datakit", "verify", f"{MANIFESTS}/pack.json")
    call("datakit", "explain", plan["near_duplicates"][0]["id"], "--dataset", "demo")
    pack_text()
    head("4  train.sft: a model of half a million parameters")
    shutil.rmtree(OUT / "run", ignore_errors=True)
    call("train.sft", *training_flags())
    answers = {prompt: ask(prompt) for prompt in PROMPTS}
    head("5  What happened")
    return tell(plan, answers, begin)


def head(title: str) -> None:
    """Print the title of a part."""
    print(f"\n── {title} ──", flush=True)


def pack_text() -> None:
    """Pack the language reference with the trained tokenizer: one command without a recipe, one output folder."""
    pack = MANIFESTS / "pack.json"
    tokenizer = data_dir(pack, load(pack)) / "kept" / "tokenizer"
    if (OUT / "text" / "pydoc_topics.jsonl").stat().st_size:  # not every installation has it
        flags = ("--tokenizer", str(tokenizer), "--seq-len", "512", "--output", str(OUT / "packed_text"))
        call("datakit", "pack", str(OUT / "text"), *flags)


def training_flags() -> tuple[str, ...]:
    """The trainer's options that are not its defaults: many small steps at a high rate suit a small model."""
    flags = {"manifest": f"{MANIFESTS}/pack.json", "preset": "tiny", "steps": STEPS, "out": OUT / "run"}
    flags |= {"num-layers": 2, "optimizer": "muon", "lr": LEARNING_RATE, "batch-rows": BATCH_ROWS, "threads": THREADS}
    flags |= {"log-every": STEPS // 10, "save-every": STEPS}
    return tuple(text for name, value in flags.items() for text in (f"--{name}", str(value)))


def call(module: str, *args: str) -> None:
    """Run a module's command in this terminal; if it fails, the demo ends with its message and exit code."""
    done = subprocess.run([sys.executable, "-m", module, *args], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def ask(prompt: str) -> str:
    """The trained model's answer."""
    asked = [sys.executable, "-m", "train.generate", "--model", str(OUT / "run"), "--prompt", prompt]
    done = subprocess.run([*asked, "--max-new-tokens", "160"], check=False, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def tell(plan: found.Plan, answers: dict[str, str], begin: float) -> int:
    """Print the tables, the answers, where the files are, and all problems; returns the exit code."""
    manifests, training = report.load_all(MANIFESTS), report.Training.read(OUT / "run" / "metrics.jsonl")
    compared = found.compare(plan, MANIFESTS)
    wrong = report.problems(manifests, compared, training)
    minutes, seconds = divmod(round(time.monotonic() - begin), 60)
    python = Path(sys.executable)
    shown = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    for title, lines in {
        "Planted on purpose, and found": report.found_lines(compared),
        "Packed and trained": report.training_lines(manifests[-1], training),
        "Questions and answers (such a small model can only recite its training data)":
            [f"{question}\n{textwrap.indent(answer, '  ')}" for question, answer in answers.items()],
        "Where the files are": report.place_lines(MANIFESTS, OUT),
        "Failed" if wrong else "Done": [f"WRONG: {problem}" for problem in wrong] + [
            f"after {minutes} min {seconds} s",
            f"Chat with the model: {shown} -m train.serve --model {OUT / 'run'} --temperature 0",
        ],
    }.items():  # fmt: skip
        print(f"\n{title}\n", *(f"  {line}" for line in lines), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
