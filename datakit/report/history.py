"""What a project holds, for people: the state of every dataset, and the versions of each stage."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datakit.engine.lineage import config_differences, limit_differences, old_versions, raw_differences, unused_folders
from datakit.engine.plan import stale_results
from datakit.engine.recipe import FLOW, datasets
from datakit.errors import DatakitError
from datakit.manifest import Manifest, data_dir, load, load_run, purged_on
from datakit.storage import exists, sizes


def state(root: Path, dataset: str) -> dict[str, Any]:
    """A dataset as JSON: its stages with rows, bytes and why they are stale, and what `datakit gc` would free."""
    folder = root / "manifests" / dataset
    stages, stale = [], stale_results(root, dataset)
    for stage in (s for s in FLOW if (folder / f"{s}.json").is_file()):
        path = folder / f"{stage}.json"
        try:
            manifest = load(path)
        except DatakitError as e:
            stages.append({"stage": stage, "problem": str(e)})
            continue
        rows = manifest.ledger.rows
        size = sum(shard.bytes for shard in manifest.shards)
        made = load_run(path).get("started", "")
        about = {"version": manifest.version, "in": rows.into, "kept": rows.kept, "bytes": size, "made": made}
        stages.append({"stage": stage} | about | {"stale": stale.get(stage, "")})
    missing = [s for s in stale if not (folder / f"{s}.json").is_file()]
    unused = sum(sum(sizes(f).values()) for f in unused_folders(root, dataset, ignore=set()))
    purgeable = sum(old.bytes for old in old_versions(root, dataset) if old.needed_by is None)
    return {"dataset": dataset, "stages": stages, "missing": missing, "gc": unused, "gc_purge": purgeable}


def states(root: Path, dataset: str | None = None) -> list[dict[str, Any]]:
    """The state of every dataset of a project, or of one."""
    return [state(root, name) for name in datasets(root) if dataset in (None, name)]


def state_lines(found: dict[str, Any]) -> Iterator[str]:
    """A state for people."""
    yield found["dataset"]
    for s in found["stages"]:
        if "problem" in s:
            yield f"  {s['stage']:<12} {s['problem']}"
            continue
        yield (
            f"  {s['stage']:<12} {s['version']}  {s['in']:>12,} rows in {s['kept']:>12,} kept {s['bytes']:>15,} bytes  "
            f"{s['made'][:10]}{'  STALE: ' + s['stale'] if s['stale'] else ''}"
        )
    if found["missing"]:
        yield f"  not run yet: {', '.join(found['missing'])}"
    yield f"  `datakit gc` would free {found['gc']:,} bytes, `datakit gc --purge` {found['gc_purge']:,} more"


def versions(root: Path, dataset: str, stage: str | None = None) -> list[dict[str, Any]]:
    """All versions of a dataset's stages as JSON, the oldest of each first: when it was made and what changed."""
    folder, found = root / "manifests" / dataset, []
    for name in (s for s in FLOW if stage in (None, s)):
        made = [(load_run(p), p, load(p)) for p in folder.glob(f"history/{name}-*.json") if _is_version(p, name)]
        before: Manifest | None = None
        for run, path, manifest in sorted(made, key=lambda version: version[0].get("started", "")):
            current = folder / f"{name}.json"
            found.append(
                {
                    "stage": name,
                    "version": manifest.version,
                    "made": run.get("started", ""),
                    "rows": manifest.ledger.rows.kept,
                    "current": current.is_file() and load(current).version == manifest.version,
                    "shards": _shards(path, manifest),
                    "changed": list(_changes(before, manifest)),
                }
            )
            before = manifest
    return found


def _is_version(path: Path, stage: str) -> bool:
    return not path.name.endswith(".run.json") and load(path).stage == stage


def _shards(path: Path, manifest: Manifest) -> str:
    if purged := purged_on(path, manifest):
        return f"purged on {purged}"
    return "there" if exists(data_dir(path, manifest)) else "gone"


def _changes(before: Manifest | None, after: Manifest) -> Iterator[str]:
    """What differs between two versions of a stage, and what came of it."""
    if before is None:
        yield "first version"
        return
    yield from raw_differences(before.parents, after.parents)
    old, new = ({p["manifest"]: p["version"] for p in m.parents if "manifest" in p} for m in (before, after))
    yield from (
        f"{name} {old.get(name, 'none')} -> {version}" for name, version in new.items() if old.get(name) != version
    )
    yield from limit_differences(before.parents, after.parents)
    yield from config_differences(before.config, after.config)
    if before.facts.get("resources") != after.facts.get("resources"):
        yield "other models, or another list of removed rows"
    if before.code != after.code:
        yield "another version of the code"
    kept = after.ledger.rows.kept - before.ledger.rows.kept
    if kept:
        yield f"{kept:+,} rows"


def version_lines(found: list[dict[str, Any]]) -> Iterator[str]:
    """Versions for people."""
    for v in found:
        when = v["made"].replace("T", " ").removesuffix("Z") or "(no run file)"
        mark = "*" if v["current"] else " "
        gone = "" if v["shards"] == "there" else f" (shards {v['shards']})"
        yield f"{mark} {v['stage']:<12} {v['version']}  {when}  {v['rows']:>12,} rows{gone}  {'; '.join(v['changed'])}"
