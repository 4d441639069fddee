"""Draw docs/funnel.png, the picture of the README, from the manifests that `make demo` wrote.

python -m demo.picture
"""

import sys
from pathlib import Path
from typing import Final

from datakit.manifest import Manifest, load
from demo.report import reasons

ROOT: Final = Path(__file__).resolve().parents[1]
MANIFESTS: Final = ROOT / "manifests/demo"
PICTURE: Final = ROOT / "docs/funnel.png"
STAGES: Final = ("ingest", "language", "dedup", "filter")
KEPT, DROPPED, INK, QUIET = "#4878a8", "#e08a3c", "#222222", "#666666"


def labels(manifest: Manifest) -> str:
    """What a stage dropped or quarantined, by reason; thresholds are summed by rule set."""
    rows = manifest.ledger.rows
    lines = [line for line in reasons(rows.dropped) if not line.startswith(" ")]
    lines += [f"{rows.quarantined} quarantined"] if rows.quarantined else []
    return ", ".join(lines)


def main() -> int:
    """Draw the picture; returns the exit code."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    manifests = [load(MANIFESTS / f"{stage}.json") for stage in STAGES]
    pack = load(MANIFESTS / "pack.json")
    total = manifests[0].ledger.rows.into
    figure, axes = plt.subplots(figsize=(9, 3.6), dpi=110)
    for y, manifest in enumerate(manifests):
        rows = manifest.ledger.rows
        axes.barh(y, rows.kept, color=KEPT, height=0.62)
        axes.barh(y, rows.into - rows.kept, left=rows.kept, color=DROPPED, height=0.62)
        axes.text(-total * 0.015, y, manifest.stage, ha="right", va="center", color=INK, fontsize=11)
        axes.text(total * 0.012, y, f"{rows.kept:,} kept", va="center", color="white", fontsize=10)
        axes.text(rows.into + total * 0.012, y, labels(manifest), va="center", color=QUIET, fontsize=9)
    facts, seq_len = pack.facts["packing"], pack.facts["packed"]["seq_len"]
    tokens = pack.ledger.tokens
    assert tokens is not None
    y = len(manifests)
    axes.barh(y, pack.ledger.rows.kept, color=KEPT, height=0.62)
    axes.text(-total * 0.015, y, "pack", ha="right", va="center", color=INK, fontsize=11)
    packed = f"{tokens.kept:,} tokens in {facts['packed_rows']:,} rows of {seq_len}"
    axes.text(total * 0.012, y, packed, va="center", color="white", fontsize=10)
    note = f"{facts['density']:.1%} real tokens, {facts['label_share']:.1%} of them labels"
    axes.text(pack.ledger.rows.kept + total * 0.012, y, note, va="center", color=QUIET, fontsize=9)
    title = f"make demo: {total:,} conversations; orange rows are dropped, each with its reason"
    axes.set_title(title, loc="left", color=INK, fontsize=12)
    axes.set_xlim(0, total * 1.5)
    axes.invert_yaxis()
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Software": None})
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
