"""`datakit tune`: what each threshold of the filter drops, and what another one would."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from datakit.cli.stages import CONTEXT
from datakit.config import assign, build
from datakit.engine.recipe import only_dataset
from datakit.errors import UsageError
from datakit.manifest import Manifest, data_dir, load


@click.command(context_settings=CONTEXT)
@click.argument("thresholds", nargs=-1, metavar="[RULE_SET[.THRESHOLD]]...")
@click.option("--dataset", help="The dataset's name.")
@click.option("--manifest", type=click.Path(path_type=Path), help="A filter manifest, instead.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Another limit, as `datakit filter --set`.")
@click.option("--groups", type=click.IntRange(0), default=5, help="Languages and sources to show [default: 5]")
@click.option("--examples", type=click.IntRange(0), default=2, help="Rows on each side of a limit [default: 2]")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, and nothing else.")
def tune(
    thresholds: tuple[str, ...],
    dataset: str | None,
    manifest: Path | None,
    sets: tuple[str, ...],
    groups: int,
    examples: int,
    as_json: bool,
) -> None:
    """Show what each threshold of the last filter run drops by itself: the share of rows, per language and source,
    which limit would drop how many, and rows just inside and just outside. Only saved signals are read, and the text of
    the rows shown.

    RULE_SET shows rule sets that were not on too, as far as what they look at was measured."""
    from datakit.filter.thresholds import findings

    path = _filter_manifest(dataset, manifest)
    found = load(path)
    folder = data_dir(path, found)
    table = _signals(path, found, folder)
    chosen = _rule_sets(found, thresholds, sets)
    listed = [f for f in findings(table, chosen, examples) if _asked(f.name, thresholds)]
    if as_json:
        click.echo(json.dumps([asdict(f) for f in listed], ensure_ascii=False, indent=1))
        return
    texts = _texts(found, folder, {i for f in listed for i, _ in (*f.inside, *f.outside)})
    for finding in listed:
        click.echo("\n".join(_lines(finding, table.num_rows, groups, texts)))


def _filter_manifest(dataset: str | None, manifest: Path | None) -> Path:
    root = Path.cwd()
    path = manifest or root / "manifests" / (dataset or only_dataset(root)) / "filter.json"
    path = path / "manifest.json" if path.is_dir() else path
    if not path.is_file():
        raise UsageError(f"{path}: is not there; `datakit filter` measures the rows first")
    return path


def _signals(path: Path, manifest: Manifest, folder: Path) -> Any:
    import pyarrow as pa

    from datakit.data import read_shard

    shards = manifest.of_role("signals")
    if not shards:
        raise UsageError(f"{path}: holds no signals; run `datakit filter` with signals on, and on more than no rows")
    return pa.Table.from_batches([b for s in shards for b in read_shard(folder / s.path)])


def _rule_sets(manifest: Manifest, thresholds: tuple[str, ...], sets: tuple[str, ...]) -> list[Any]:
    """The rule sets of the run, then others that are asked for, with the run's limits and `--set` values."""
    from datakit.filter.stage import FilterConfig, rule_set_class

    values = dict(manifest.config) | {"rules": []}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: expected key=value")
        assign(values, FilterConfig, key.removeprefix("filter."), value)
    config = build(FilterConfig, values, "filter")
    asked = [t.partition(".")[0].replace("-", "_") for t in thresholds]
    names = dict.fromkeys([*manifest.config["rules"], *asked])
    for name in names:
        rule_set_class(name)
    measured = manifest.facts["saved"]["counted"]
    return [found for n in names if _was_measured(found := config.rule_set(n), measured, n in asked)]


def _was_measured(rule_set: Any, measured: dict[str, Any], asked: bool) -> bool:
    """Whether the run counted all that a rule set's thresholds need."""
    counted_with = json.loads(json.dumps(rule_set.counted_with()))
    if not rule_set.counts or measured.get(rule_set.name) == counted_with:
        return True
    if asked:
        raise UsageError(
            f"{rule_set.name}: was not measured like that; run `datakit filter` with it among its rules first"
        )
    return False


def _asked(name: str, thresholds: tuple[str, ...]) -> bool:
    wanted = [t.replace("-", "_") for t in thresholds]
    return not wanted or any(name == t or name.startswith(f"{t}.") for t in wanted)


def _texts(manifest: Manifest, folder: Path, ids: set[str]) -> dict[str, str]:
    """The text of a few rows, on one line each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from datakit.data import read_shard
    from datakit.report.rows import body, shorten

    wanted, found = pa.array(sorted(ids), pa.string()), dict[str, str]()
    for shard in (*manifest.of_role("kept"), *manifest.of_role("dropped")):
        if len(found) == len(ids):
            break
        for batch in read_shard(folder / shard.path):
            rows = batch.filter(pc.is_in(batch.column("id"), wanted)).to_pylist()
            found |= {row["id"]: shorten(body(row), 160) for row in rows}
    return found


def _lines(finding: Any, total: int, groups: int, texts: dict[str, str]) -> list[str]:
    lines = [
        f"{finding.name} = {finding.limit}",
        f"  drops     {finding.drops:>12,} of {total:,} rows ({_share(finding.drops, total)}); "
        f"{finding.first:,} that no threshold above drops",
    ]
    if finding.rows < total:
        lines.append(f"  silent    {total - finding.rows:>12,} rows that it says nothing about")
    if finding.limits:
        lines.append("  a limit of  " + ", ".join(f"{v:g} drops {s:.1%}" for v, s in finding.limits.items()))
    for column, counts in finding.groups.items():
        shown = list(counts.items())[:groups]
        rest = f", and {len(counts) - groups} more" if len(counts) > groups else ""
        if shown:
            said = ", ".join(f"{key} {_share(drops, rows)} of {rows:,}" for key, (rows, drops) in shown)
            lines.append(f"  {column:<9} {said}{rest}")
    for side, rows in (("stays", finding.inside), ("drops", finding.outside)):
        lines += [f"  {side}  {value:g}  {row_id}: {texts.get(row_id, '')}" for row_id, value in rows]
    return lines


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"
