"""Scores of train.eval beside those of lm-evaluation-harness, on the same files and the same model.

    python bench/suites.py --tokenizer ../shared/tokenizers/smollm --peer PYTHON

`PYTHON` is an interpreter of an environment with lm-eval. The questions are made from a few words, in the published
layouts; the harness reads them with its own tasks for ARC, HellaSwag and C-Eval. The model has random weights: what it
says is no knowledge, but it is a number.
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
import torch  # noqa: E402

from datakit.pack.chat import ChatTokenizer  # noqa: E402
from train.model.decoder import PRESETS, CausalLM  # noqa: E402
from train.model.hf import write_model  # noqa: E402

WORDS = "cat dog ball tree house red big happy mom friend park water little girl boy bird".split()  # noqa: SIM905
PEER = """
import json, sys
from pathlib import Path
import lm_eval
from lm_eval.tasks import TaskManager
folder, model, tasks = Path(sys.argv[1]), sys.argv[2], Path(lm_eval.__file__).parent / "tasks"
base = {"arc": "arc/arc_easy.yaml", "hellaswag": "hellaswag/hellaswag.yaml", "ceval": "ceval/_default_ceval_yaml"}
(folder / "tasks").mkdir()
for name, yaml in base.items():
    (folder / "tasks" / f"{name}.yaml").write_text(
        f"include: {tasks / yaml}\\ntask: own_{name}\\ntag: null\\ndataset_path: json\\ndataset_name: null\\n"
        f"dataset_kwargs:\\n  data_files:\\n    test: {folder / name}.jsonl\\n"
        "training_split: null\\nvalidation_split: null\\ntest_split: test\\nfewshot_split: null\\nnum_fewshot: 0\\n"
    )
manager = TaskManager(include_path=str(folder / "tasks"))
found = lm_eval.simple_evaluate(
    model="hf", model_args={"pretrained": model, "dtype": "float32"}, device="cpu", batch_size=8,
    tasks=[f"own_{name}" for name in base], task_manager=manager, bootstrap_iters=0,
)["results"]
print(json.dumps({n[4:]: {"acc": r["acc,none"], "acc_norm": r["acc_norm,none"]} for n, r in found.items()}))
"""


def questions(folder: Path, count: int) -> list[Path]:
    """Files of questions with words at random."""
    rng = random.Random(0)

    def phrase(most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    made: dict[str, list[dict[str, object]]] = {"arc": [], "hellaswag": [], "ceval": []}
    for _ in range(count):
        answers, endings = ([phrase(5) for _ in range(4)] for _ in range(2))
        choices = {"text": answers, "label": list("1234")}
        made["arc"].append({"question": phrase(6), "choices": choices, "answerKey": str(rng.randint(1, 4))})
        context = {"activity_label": phrase(1), "ctx_a": f"The {phrase(4)} was", "ctx_b": phrase(2)}
        made["hellaswag"].append(context | {"endings": endings, "label": str(rng.randint(0, 3))})
        lettered = dict(zip("ABCD", answers, strict=True))
        made["ceval"].append({"question": phrase(5), **lettered, "answer": rng.choice("ABCD")})
    for name, rows in made.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [folder / f"{name}.jsonl" for name in made]


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
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, model = Path(place), Path(place) / "model"
        model.mkdir()
        made = CausalLM(replace(PRESETS["tiny"], vocab_size=ChatTokenizer.load(Path(a.tokenizer)).vocab_size))
        made.init_weights(torch.Generator().manual_seed(0))
        files = [Path(a.tokenizer) / name for name in ("tokenizer.json", "tokenizer_config.json")]
        write_model(model, made, files, {})
        suites = ",".join(map(str, questions(folder, a.items)))
        ours = last_json([sys.executable, "-m", "train.eval", "--model", str(model), "--suites", suites, "--json"])
        theirs = last_json([a.peer, "-c", PEER, str(folder), str(model)])
    for name, scores in theirs.items():
        for metric, value in scores.items():
            own = ours["suites"][name][metric]
            verdict = "equal" if abs(own - value) < 1e-9 else "UNLIKE"
            print(f"{name:<10} {metric:<9} train.eval {own:.4f}  lm-eval {value:.4f}  {verdict}")


if __name__ == "__main__":
    main()
