"""Draw the pictures of the README, docs/funnel.svg and docs/labels.svg, from what `make demo` made.

python -m demo.picture
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import jinja2

from datakit.manifest import Manifest, load
from datakit.pack.inspect import PackedRow, open_all, peek
from datakit.report.finder import visible

ROOT: Final = Path(__file__).resolve().parents[1]
MANIFESTS: Final = ROOT / "manifests/demo"
DOCS: Final = ROOT / "docs"
WIDTH: Final = 104
LINES: Final = 9
"""Characters in a line, and lines, of the picture of labels."""
STAGES: Final = ("ingest", "language", "dedup", "filter")


def bars(manifests: list[Manifest], pack: Manifest) -> list[dict[str, Any]]:
    """What each bar shows: its stage, the rows that stay and go, what stands in it and behind it."""
    made = []
    for manifest in manifests:
        rows = manifest.ledger.rows
        reasons = Counter({"quarantined": rows.quarantined})
        for reason, n in sorted(rows.dropped.items()):
            reasons[reason.partition(".")[0]] += n  # the sum of a rule set's thresholds
        lost = [f"{n:,} {reason}" for reason, n in reasons.most_common() if n]
        made.append({"stage": manifest.stage, "kept": rows.kept, "lost": rows.into - rows.kept,
                     "inside": f"{rows.kept:,} kept", "behind": ", ".join(lost)})  # fmt: skip
    facts, seq_len, tokens = pack.facts["packing"], pack.facts["packed"][0]["seq_len"], pack.ledger.tokens
    assert tokens is not None
    packed = f"{tokens.kept:,} tokens in {facts['packed_rows']:,} rows of {seq_len}"
    note = f"{facts['density']:.1%} real tokens, {facts['label_share']:.1%} of them labels"
    return [*made, {"stage": "pack", "kept": pack.ledger.rows.kept, "lost": 0, "inside": packed, "behind": note}]


def label_lines(row: PackedRow) -> list[list[tuple[bool, int, str]]]:
    """The beginning of a packed row as lines of parts: whether they are learned, the place in the line, the text."""
    made: list[list[tuple[bool, int, str]]] = [[]]
    at = 0
    for run in (run for sequence in row.sequences for run in sequence.runs):
        text = "".join(visible(piece.text) for piece in run.pieces)
        while text:
            if at == WIDTH:
                made.append([])
                at = 0
            part, text = text[: WIDTH - at], text[WIDTH - at :]
            made[-1].append((run.learnt, at, part))
            at += len(part)
    return made[:LINES]


def draw(name: str, **shown: Any) -> str:
    """A picture: SVG without scripts or fonts of its own, readable on a light and on a dark page."""
    template = jinja2.Template((Path(__file__).parent / name).read_text(encoding="utf-8"), autoescape=True)
    return template.render(**shown) + "\n"


def main() -> int:
    """Draw the pictures; returns the exit code."""
    manifests, pack = [load(MANIFESTS / f"{stage}.json") for stage in STAGES], MANIFESTS / "pack.json"
    shown = bars(manifests, load(pack))
    sets, tokenizer = open_all(pack)
    made = {
        "funnel.svg": draw("funnel.svg", bars=shown, total=shown[0]["kept"] + shown[0]["lost"]),
        "labels.svg": draw("labels.svg", lines=label_lines(peek(sets[0], tokenizer, 0))),
    }
    for name, picture in made.items():
        (DOCS / name).write_text(picture, encoding="utf-8")
        print(f"docs/{name}: {len(picture.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
