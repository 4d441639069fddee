"""Ledgers as lines of text."""

from datakit.manifest import Count, Manifest


def ledger_lines(manifest: Manifest) -> list[str]:
    """A stage's ledger: what went in, what became of it, what was noted."""
    lines = [f"{manifest.dataset} / {manifest.stage}  version {manifest.version}"]
    for unit, count in (("rows", manifest.ledger.rows), ("tokens", manifest.ledger.tokens)):
        if count is not None:
            lines += _count_lines(unit, count)
    lines += [f"  note      {n:>14,}  {name}" for name, n in manifest.ledger.notes.items()]
    lines += [f"  ALARM     {alarm}" for alarm in manifest.facts.get("alarms", [])]
    return lines


def _count_lines(unit: str, count: Count) -> list[str]:
    lines = [
        f"  in        {count.into:>14,}  {unit}",
        f"  kept      {count.kept:>14,}  {unit}{_share(count.kept, count)}",
    ]
    for reason, n in sorted(count.dropped.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  dropped   {n:>14,}  {reason}{_share(n, count)}")
    for name, n in (("quarantine", count.quarantined), ("edited", count.edited), ("padding", count.padding)):
        lines += [f"  {name:<10}{n:>14,}  {unit}"] if n else []
    return lines


def _share(part: int, count: Count) -> str:
    return f"  ({part / count.into:.1%})" if count.into else ""
