"""What a project holds, for people: the state of every dataset, and the versions of each stage."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datakit.engine.lineage import what_changed
from datakit.engine.maintenance import old_versions, unused_folders
from datakit.engine.plan import stale_results
from datakit.engine.recipe import FLOW, datasets
from datakit.errors import DatakitError
from datakit.manifest import Manifest, data_dir, load, load_readable, load_run, purged_on
from datakit.report.tables import lines_of
from datakit.storage import exists, sizes


def states(root: Path, dataset: str | None = None) -> list[dict[str, Any]]:
    """The state of every dataset of a project, or of one, as JSON.

    It holds the stages with rows, bytes and why they are stale, and what `datakit gc` would free.
    """
    return [_state(root, name) for name in datasets(root) if dataset in (None, name)]


def _state(root: Path, dataset: str) -> dict[str, Any]:
    folder, stale = root / "manifests" / dataset, stale_results(root, dataset)
    stages = list[dict[str, Any]]()
    for stage in (s for s in FLOW if (folder / f"{s}.json").is_file()):
        path = folder / f"{stage}.json"
        try:
            manifest = load(path)
        except DatakitError as e:
            stages.append({"stage": stage, "problem": str(e)})
            continue
        rows, made = manifest.ledger.rows, load_run(path).get("started", "")
        about = {"stage": stage, "version": manifest.version, "in": rows.into, "kept": rows.kept}
        about |= {"bytes": sum(shard.bytes for shard in manifest.shards), "made": made}
        stages.append(about | {"stale": stale.get(stage, "")})
    missing = [s for s in stale if not (folder / f"{s}.json").is_file()]
    unused = sum(sum(sizes(f).values()) for f in unused_folders(root, dataset))
    purgeable = sum(old.bytes for old in old_versions(root, dataset) if old.needed_by is None)
    return {"dataset": dataset, "stages": stages, "missing": missing, "gc": unused, "gc_purge": purgeable}


def state_lines(found: dict[str, Any]) -> Iterator[str]:
    """A state for people."""
    yield found["dataset"]
    rows = []
    for s in (s for s in found["stages"] if "problem" not in s):
        stale = s["stale"] and f"STALE: {s['stale']}"
        rows.append((s["stage"], s["version"], s["in"], s["kept"], s["bytes"], s["made"][:10], stale))
    yield from lines_of(["stage", "version", "rows in", "kept", "bytes", "made", ""], rows, 2) if rows else ()
    yield from (f"  {s['stage']}  {s['problem']}" for s in found["stages"] if "problem" in s)
    if found["missing"]:
        yield f"  not run yet: {', '.join(found['missing'])}"
    yield f"  `datakit gc` would free {found['gc']:,} bytes, `datakit gc --purge` {found['gc_purge']:,} more"


def versions(root: Path, dataset: str, stage: str | None = None) -> list[dict[str, Any]]:
    """All versions of a dataset's stages as JSON, the oldest of each first: when it was made and what changed."""
    folder, found = root / "manifests" / dataset, list[dict[str, Any]]()
    for name in (s for s in FLOW if stage in (None, s)):
        paths = (p for p in folder.glob(f"history/{name}-*.json") if not p.name.endswith(".run.json"))
        made = [(load_run(p).get("started", ""), p, m) for p in paths if (m := load_readable(p)) and m.stage == name]
        before, current = None, folder / f"{name}.json"
        now = load_readable(current) if current.is_file() else None
        # run files tell seconds: two quick runs are told apart by their files
        for when, path, manifest in sorted(made, key=lambda version: (version[0], version[1].stat().st_mtime_ns)):
            about = {"stage": name, "version": manifest.version, "made": when, "rows": manifest.ledger.rows.kept}
            about["current"] = now is not None and now.version == manifest.version
            purged = purged_on(path, manifest)
            there = "there" if exists(data_dir(path, manifest)) else "gone"
            about["shards"] = f"purged on {purged}" if purged else there
            found.append(about | {"changed": list(_changes(before, manifest))})
            before = manifest
    return found


def _changes(before: Manifest | None, after: Manifest) -> Iterator[str]:
    """What differs between two versions of a stage, and what came of it."""
    if before is None:
        yield "first version"
        return
    yield from what_changed(before, after.parents, after.config, after.facts.get("resources", {}), after.code)
    if kept := after.ledger.rows.kept - before.ledger.rows.kept:
        yield f"{kept:+,} rows"


def version_lines(found: list[dict[str, Any]]) -> list[str]:
    """Versions for people."""
    rows = []
    for v in found:
        made = v["made"].replace("T", " ").removesuffix("Z") or "(no run file)"
        said = [*v["changed"], f"shards {v['shards']}"] if v["shards"] != "there" else v["changed"]
        rows.append(("*" if v["current"] else "", v["stage"], v["version"], made, v["rows"], "; ".join(said)))
    return lines_of(["", "stage", "version", "made", "rows", "what changed"], rows)
