"""Draw docs/funnel.svg, the picture of the README, from the manifests that `make demo` wrote.

python -m demo.picture
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import jinja2

from datakit.manifest import Manifest, load

ROOT: Final = Path(__file__).resolve().parents[1]
MANIFESTS: Final = ROOT / "manifests/demo"
PICTURE: Final = ROOT / "docs/funnel.svg"
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
    facts, seq_len, tokens = pack.facts["packing"], pack.facts["packed"]["seq_len"], pack.ledger.tokens
    assert tokens is not None
    packed = f"{tokens.kept:,} tokens in {facts['packed_rows']:,} rows of {seq_len}"
    note = f"{facts['density']:.1%} real tokens, {facts['label_share']:.1%} of them labels"
    return [*made, {"stage": "pack", "kept": pack.ledger.rows.kept, "lost": 0, "inside": packed, "behind": note}]


def draw(shown: list[dict[str, Any]]) -> str:
    """The picture: SVG without scripts or fonts of its own, readable on a light and on a dark page."""
    template = jinja2.Template((Path(__file__).parent / "funnel.svg").read_text(encoding="utf-8"), autoescape=True)
    return template.render(bars=shown, total=shown[0]["kept"] + shown[0]["lost"]) + "\n"


def main() -> int:
    """Draw the picture; returns the exit code."""
    manifests = [load(MANIFESTS / f"{stage}.json") for stage in STAGES]
    PICTURE.write_text(draw(bars(manifests, load(MANIFESTS / "pack.json"))), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
