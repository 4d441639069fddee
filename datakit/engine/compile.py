"""`datakit compile`: run every stage on a few made rows, so that all kernels are compiled and cached before real work.

Kernels are compiled for the types of their arguments. Stages call them with the same types whatever the data, so a run
on made rows compiles what any run needs.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from datakit.engine.executors import Local, Progress
from datakit.engine.plan import Flow
from datakit.engine.recipe import Recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.errors import MissingExtraError, ModelError

_TEXT = (
    "The harbour of the old town was built in the year of the great flood. Nobody thought that it would be needed "
    "again! Then the railway came, and with it the merchants who wanted to ship their grain before winter.\n\n"
    "- They asked the council for a wall; 3 of 7 members agreed...\n- Write to port@example.org or 192.168.0.1.\n\n"
    "港口建于大洪水之年。没有人认为它会再次被需要。Гавань старого города построили давно, café naïve.\n"
)
_TOKENIZE = ("tokenizer", "tokenize", "pack")
_VALUES: dict[str, dict[str, Any]] = {
    "dedup": {"save_index": True},
    "dedup_repeats": {"min_words_left": 0},
    "tokenizer": {"vocab_size": 300},
    "pack": {"seq_len": 64},
}


_REPEATS: dict[str, dict[str, Any]] = {"line": {"min_words_left": 0}, "token": {"max_repeated_share": 0.1}}


def compile_kernels(tell: Callable[[str], None]) -> None:
    """Compile the kernels of all stages; `tell` gets a line for each step.

    A stage whose model is not installed is left out, and `tell` says so.
    """
    with tempfile.TemporaryDirectory(prefix="datakit-compile-") as scratch:
        root = Path(scratch)
        items = root / "items.jsonl"
        items.write_text(json.dumps({"question": _TEXT[:200], "answer": "Before winter, said the merchants."}) + "\n")
        words = root / "words.txt"
        words.write_text("harbour\nold town\n")
        rules: dict[str, Any] = {
            "rules": ("gopher_quality", "gopher_repetition", "c4", "fineweb", "loops", "words", "private"),
            "words": {"lists": {"all": str(words)}},
        }
        search: dict[str, Any] = {
            "rules": ("contamination",),
            "contamination": {"eval": (str(items),), "action": "cut"},
        }
        overlap = {"rules": ("contamination",), "contamination": {"eval": (str(items),), "mode": "overlap"}}
        steps: list[tuple[str, Callable[[], Iterator[Any]], tuple[str, ...], dict[str, Any]]] = [
            ("language", _documents, ("language",), {}),
            ("dedup", _documents, ("dedup_urls", "dedup"), {}),
            *(
                (
                    f"{unit}s that occur again",
                    _documents,
                    ("dedup_repeats",),
                    {"dedup_repeats": {"unit": unit} | values},
                )
                for unit, values in _REPEATS.items()
            ),
            ("filters", _documents, ("filter",), {"filter": rules}),
            ("contamination", _documents, ("filter",), {"filter": search}),
            ("contamination by overlap", _documents, ("filter",), {"filter": overlap}),
            ("tokenize and pack", _documents, _TOKENIZE, {}),
            ("pack rows that leave much room", _alike, _TOKENIZE, {}),
            ("conversations", _conversations, ("dedup", "filter", *_TOKENIZE), {}),
            ("preference pairs", _pairs, ("dedup", "filter", *_TOKENIZE), {}),
        ]
        if find_spec("wordllama"):
            steps.append(("dedup by meaning", _conversations, ("dedup_semantic",), {"dedup_semantic": {"cells": 2}}))
        if find_spec("fastwarc") and find_spec("resiliparse"):
            steps.append(("web pages", _documents, (), {"ingest": {"html_field": "text"}}))
        for number, (title, rows, stages, values) in enumerate(steps):
            tell(f"compiling {number + 1}/{len(steps)}: {title}")
            path = root / f"rows{number}.jsonl"
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows()), encoding="utf-8")
            _run(root, f"compile{number}", path, stages, _VALUES | values, tell)


def _run(
    root: Path,
    name: str,
    path: Path,
    stages: tuple[str, ...],
    values: dict[str, dict[str, Any]],
    tell: Callable[[str], None],
) -> None:
    recipe = Recipe(dataset=name, inputs=(str(path),), stages=("ingest", *stages), tables=values)
    run = Run(layout=OutputLayout(root=root, dataset=name), executor=Local(1), progress=Progress())
    try:
        Flow(run=run, recipe=recipe).all()
    except (ModelError, MissingExtraError) as e:
        if "language" not in stages:
            raise
        tell(f"the language stage is left out: {e}")
        _run(root, name, path, tuple(s for s in stages if s != "language"), values, tell)


def _documents() -> Iterator[dict[str, str]]:
    for n in range(24):
        text = _TEXT * (1 + n % 3) + f"Row {n} says something of its own: {n * 7919} {'x' * n}."
        yield {"text": text, "url": f"https://example.org/{n // 2}"}


def _alike() -> Iterator[dict[str, str]]:
    """Rows of more than a third of `seq_len`: two fit in a packed row, and the slowest search for a better fit runs."""
    for n in range(40):
        yield {"text": f"{n * 7919 % 10**6:06d} {n * 104729 % 10**12:012d} rows"}


def _conversations() -> Iterator[dict[str, Any]]:
    for n in range(8):
        answer = {"role": "assistant", "content": f"{_TEXT[n * 9 :]} {n}"}
        yield {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": _TEXT}, answer]}
    for n in range(70):  # so many with the same first letters are found through an index
        asked = {"role": "user", "content": f"Write about b{chr(97 + n % 26)}{chr(97 + n // 26)}ok words"}
        yield {"messages": [asked, {"role": "assistant", "content": "It is done."}]}


def _pairs() -> Iterator[dict[str, str]]:
    for n in range(8):
        yield {"prompt": f"{n}? {_TEXT}", "chosen": f"Yes, {n}. {_TEXT[n:]}", "rejected": f"No. {_TEXT[n * 20 :]}"}
