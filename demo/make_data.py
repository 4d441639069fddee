"""Makes the demo's raw data in a folder: `python -m demo.make_data FOLDER`.

FOLDER/raw/   conversations in five layouts, questions about Python from the installation's own documentation, and rows
              with planted faults (files `unclean_*`; they are read last, so a copy is dropped and its original stays)
FOLDER/text/  the language reference that `pydoc` shows, as plain documents
FOLDER/planted.json  what was planted

The same Python installation gives the same bytes. Only the standard library is needed.
"""

import csv
import dataclasses
import gzip
import json
import random
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from demo import docstrings, plants
from demo.docstrings import Entry
from demo.plants import Plan, Row

HERE: Final = Path(__file__).parent
SEED: Final = 7
EXPORTED: Final = 14
"""Questions that are only in the file with the broken lines."""


def main() -> None:
    """Make the data and print what was planted."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m demo.make_data FOLDER")
    folder = Path(sys.argv[1])
    plan = make(folder)
    print(f"made {folder}: planted " + ", ".join(f"{len(v)} {k.replace('_', ' ')}" for k, v in plan.items()))


def make(folder: Path, stdlib: Path | None = None) -> dict[str, Any]:
    """Delete old files and write all data; returns the plan by kind of fault, as in `planted.json`."""
    raw, text = folder / "raw", folder / "text"
    for old in (raw, text):
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir(parents=True)
    entries = docstrings.collect(stdlib or Path(sysconfig.get_path("stdlib")))
    apart = max(1, len(entries) // EXPORTED)
    exported = entries[::apart][:EXPORTED]
    write_conversations(raw)
    write_documentation(raw, [e for e in entries if e not in exported])
    plan = write_unclean(raw, exported)
    write_jsonl(text / "pydoc_topics.jsonl", [{"id": k, "text": v} for k, v in docstrings.topics().items()])
    made = dataclasses.asdict(plan)
    (folder / "planted.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return made


def write_conversations(raw: Path) -> None:
    """Copy the conversations that come with the demo."""
    for path in authored():
        shutil.copyfile(path, raw / path.name)


def write_documentation(raw: Path, entries: Sequence[Entry]) -> None:
    """Write questions about Python: a CSV file about modules, three JSONL files, one of them compressed."""
    for kind, name in (("function", "functions.jsonl"), ("method", "methods.jsonl"), ("class", "classes.jsonl.gz")):
        write_jsonl(raw / f"pydoc_{name}", [question(e) for e in entries if e.kind == kind])
    with (raw / "pydoc_modules.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("id", "question", "answer"))
        table.writerows((f"py-{e.name}", e.question(), e.answer()) for e in entries if e.kind == "module")


def write_unclean(raw: Path, exported: Sequence[Entry]) -> Plan:
    """Write copies, other languages, boilerplate and an export with broken lines; returns the plan of them."""
    plan = Plan()
    written = [row for path in authored() for row in read_jsonl(path)]
    write_jsonl(raw / "unclean_copies.jsonl", plants.copies(written, random.Random(SEED), plan))
    for name, target, ids in (
        ("other_languages.jsonl", "unclean_languages.jsonl", plan.other_languages),
        ("boilerplate.jsonl", "unclean_pages.jsonl.gz", plan.boilerplate),
    ):
        rows = read_jsonl(HERE / "unwanted" / name)
        ids += [row["id"] for row in rows]
        write_jsonl(raw / target, rows)
    name = "unclean_export.jsonl"
    (raw / name).write_bytes(plants.broken([question(e) for e in exported], name, plan))
    return plan


def authored() -> list[Path]:
    """The files of conversations written for the demo, one layout a file, sorted."""
    return sorted((HERE / "conversations").glob("*.jsonl"))


def question(entry: Entry) -> Row:
    """A documented name as a conversation of two turns."""
    return plants.conversation(f"py-{entry.name}", [("user", entry.question()), ("assistant", entry.answer())])


def read_jsonl(path: Path) -> list[Row]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_jsonl(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as JSON lines, compressed if the name ends in .gz, without a time: the bytes are always equal."""
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


if __name__ == "__main__":
    main()
