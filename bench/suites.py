"""Scores of train.eval beside those of lm-evaluation-harness, on the same files and the same model.

    python bench/suites.py --tokenizer ../shared/tokenizers/smollm --peer PYTHON [--shots 2] [--bos]

`PYTHON` is an interpreter of an environment with lm-eval. The questions are made from a few words and numbers, in the
published layouts; the harness reads them with its own tasks for ARC, HellaSwag, MMLU, C-Eval and GSM8K. The model has
learned a part of the GSM8K questions by heart, so that some of its answers are right. With --shots solved questions
stand before each question; with --bos the tokenizer puts a bos token before each text.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # not this folder
import numpy as np  # noqa: E402
import torch  # noqa: E402

from datakit.pack.chat import ChatTokenizer  # noqa: E402
from train.data import flat_batch  # noqa: E402
from train.hf import write_model  # noqa: E402
from train.model import PRESETS, CausalLM  # noqa: E402
from train.sft import LabelConfig, label_loss  # noqa: E402

WORDS = "cat dog ball tree house red big happy mom friend park water little girl boy bird".split()  # noqa: SIM905
PEER = """
import json, sys
from pathlib import Path
import lm_eval
from lm_eval.tasks import TaskManager
folder, model, shots = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
tasks = Path(lm_eval.__file__).parent / "tasks"
base = {
    "arc": "arc/arc_easy.yaml", "hellaswag": "hellaswag/hellaswag.yaml", "mmlu": "mmlu/default/mmlu_anatomy.yaml",
    "ceval": "ceval/_default_ceval_yaml", "gsm8k": "gsm8k/gsm8k.yaml",
}
(folder / "tasks").mkdir()
for name, yaml in base.items():
    (folder / "tasks" / f"{name}.yaml").write_text(
        f"include: {tasks / yaml}\\ntask: own_{name}\\ntag: null\\ndataset_path: json\\ndataset_name: null\\n"
        f"dataset_kwargs:\\n  data_files:\\n    test: {folder / name}.jsonl\\n    dev: {folder / name}.solved.jsonl\\n"
        "training_split: null\\nvalidation_split: null\\ntest_split: test\\nfewshot_split: dev\\n"
        f"num_fewshot: {shots}\\nfewshot_config:\\n  sampler: first_n\\n"
    )
manager = TaskManager(include_path=str(folder / "tasks"))
found = lm_eval.simple_evaluate(
    model="hf", model_args={"pretrained": model, "dtype": "float32"}, device="cpu", batch_size=8,
    tasks=[f"own_{name}" for name in base], task_manager=manager, bootstrap_iters=0,
)["results"]
names = {"acc,none": "acc", "acc_norm,none": "acc_norm", "exact_match,strict-match": "strict_match",
         "exact_match,flexible-extract": "flexible_extract"}
print(json.dumps({n[4:]: {ours: r[key] for key, ours in names.items() if key in r} for n, r in found.items()}))
"""


def questions(folder: Path, count: int) -> list[Path]:
    """Files of questions with words at random."""
    rng = random.Random(0)

    def phrase(most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    made: dict[str, list[dict[str, object]]] = {"arc": [], "hellaswag": [], "mmlu": [], "ceval": [], "gsm8k": []}
    for _ in range(count + 4):
        answers, endings = ([phrase(5) for _ in range(4)] for _ in range(2))
        choices = {"text": answers, "label": list("1234")}
        made["arc"].append({"question": phrase(6), "choices": choices, "answerKey": str(rng.randint(1, 4))})
        context = {"activity_label": phrase(1), "ctx_a": f"The {phrase(4)} was", "ctx_b": phrase(2)}
        made["hellaswag"].append(context | {"endings": endings, "label": str(rng.randint(0, 3))})
        lettered = dict(zip("ABCD", answers, strict=True))
        made["ceval"].append({"question": phrase(5), **lettered, "answer": rng.choice("ABCD")})
        right = rng.randint(0, 3)
        made["mmlu"].append({"question": phrase(5), "choices": answers, "answer": right, "subject": "anatomy"})
        price = f"{rng.randint(1, 9999):,}"
        said = rng.choice([f"#### {price}", f"It is ${price}.", f"#### {price}.\nNo, {phrase(2)}"])
        made["gsm8k"].append({"question": phrase(6), "answer": f"{phrase(3)} {said}\n#### {price}"})
    for name, rows in made.items():
        for file, part in ((f"{name}.jsonl", rows[4:]), (f"{name}.solved.jsonl", rows[:4])):
            (folder / file).write_text("".join(json.dumps(row) + "\n" for row in part))
    return [folder / f"{name}.jsonl" for name in made]


def learn(model: CausalLM, tokenizer: ChatTokenizer, questions: Path, steps: int) -> None:
    """Train on the first half of the questions with their answers, until many are known by heart."""
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    texts = [f"Question: {row['question']}\nAnswer: {row['answer']}\n\n" for row in rows[: len(rows) // 2]]
    ids = [np.array(tokenizer.encode_document(text)) for text in texts]
    batch = flat_batch(ids, [np.arange(len(i) - 1) for i in ids], np.arange(len(ids)), 0).to("cpu")
    optimizer, loss = torch.optim.AdamW(model.parameters(), lr=2e-3), label_loss(LabelConfig())
    for _ in range(steps):
        summed, labels = loss(model, batch)[:2]
        (summed / labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss of the questions that were learned: {float(summed.detach()) / labels:.3f}", flush=True)


def last_json(command: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found: dict[str, dict[str, dict[str, float]]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--peer", required=True)
    p.add_argument("--items", type=int, default=100)
    p.add_argument("--shots", type=int, default=0)
    p.add_argument("--bos", action="store_true")
    p.add_argument("--steps", type=int, default=150, help="of the training by heart")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, model = Path(place), Path(place) / "model"
        model.mkdir()
        own = json.loads((Path(a.tokenizer) / "tokenizer.json").read_text())
        settings = json.loads((Path(a.tokenizer) / "tokenizer_config.json").read_text())
        if a.bos:  # as Llama 3 does it
            name = settings["bos_token"] = settings.get("bos_token") or settings["eos_token"]
            number = next(t["id"] for t in own["added_tokens"] if t["content"] == name)
            first = {"SpecialToken": {"id": name, "type_id": 0}}
            one, two = ([first, {"Sequence": {"id": x, "type_id": 0}}] for x in "AB")
            special = {name: {"id": name, "ids": [number], "tokens": [name]}}
            own["post_processor"] = {
                "type": "TemplateProcessing", "single": one, "pair": one + two, "special_tokens": special
            }  # fmt: skip
        (folder / "tokenizer.json").write_text(json.dumps(own))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        tokenizer, suites = ChatTokenizer.load(folder), questions(folder, a.items)
        made = CausalLM(replace(PRESETS["tiny"], vocab_size=tokenizer.vocab_size))
        made.init_weights(torch.Generator().manual_seed(0))
        learn(made, tokenizer, folder / "gsm8k.jsonl", a.steps)
        files = [folder / name for name in ("tokenizer.json", "tokenizer_config.json")]
        write_model(model, made, files, {"eos_token_id": tokenizer.eos_id, "bos_token_id": tokenizer.bos_id})
        ours = {}
        for file in suites:
            command = [sys.executable, "-m", "train.eval", "--model", str(model), "--suites", str(file), "--json"]
            solved = file.with_suffix(".solved.jsonl")
            command += ["--shots", str(a.shots), "--shots-from", str(solved)] if a.shots else []
            ours |= last_json(command)["suites"]
        theirs = last_json([a.peer, "-c", PEER, str(folder), str(model), str(a.shots)])
    for name, scores in theirs.items():
        for metric, value in scores.items():
            own_score = ours[name][metric]
            verdict = "equal" if abs(own_score - value) < 1e-9 else "UNLIKE"
            print(f"{name:<10} {metric:<16} train.eval {own_score:.4f}  lm-eval {value:.4f}  {verdict}")


if __name__ == "__main__":
    main()
