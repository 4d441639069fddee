"""What is done to a project beside its runs: garbage collection, purging; and compiling the kernels before real work.

A data folder belongs to one key of one stage. It is needed as long as a manifest names it, in `manifests/` or in the
history there.
"""

import contextlib
import json
import re
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import datakit.storage as storage
from datakit.engine.executors import Local, Progress, all_cores
from datakit.engine.plan import Flow
from datakit.engine.recipe import STAGES, Recipe
from datakit.engine.runner import Run
from datakit.engine.store import OutputLayout
from datakit.errors import MissingExtraError, ModelError, UsageError
from datakit.manifest import ROLES, Manifest, ancestors, data_dir, load_readable, load_run, run_file

# Data folders and versions.

OWN_FOLDERS = frozenset({*ROLES, ".work", ".done", ".units", ".claim"})
"""What a data folder may hold."""


def _manifests(root: Path, dataset: str | None = None) -> Iterator[tuple[Path, Any]]:
    """The manifests of a project with their paths, current ones before those in history.

    One that an earlier version of datakit wrote is None.

    Raises:
        ManifestError: one cannot be read; nothing may be removed then.
    """
    for pattern in ("*.json", "history/*.json"):
        for path in sorted((root / "manifests").glob(f"{dataset or '*'}/{pattern}")):
            if not path.name.endswith(".run.json"):
                yield path, load_readable(path)


def _current(root: Path) -> Iterator[tuple[Path, Any]]:
    return ((path, manifest) for path, manifest in _manifests(root) if path.parent.name != "history")


def _folder_of(path: Path, manifest: Manifest | None) -> Path:
    """The data folder of a manifest, also of one that an earlier version of datakit wrote."""
    if manifest is not None:
        return data_dir(path, manifest)
    old = json.loads(path.read_bytes())
    root = path.parents[3] if path.parent.name == "history" else path.parents[2]
    return root / "data" / str(old["dataset"]) / str(old["stage"]) / str(old["key"])[:16]


def unused_folders(root: Path, dataset: str | None) -> list[Path]:
    """Data folders that no manifest names.

    Raises:
        ManifestError: a manifest cannot be read; nothing may be removed then.
    """
    named = {_folder_of(path, manifest).resolve() for path, manifest in _manifests(root)}
    folders = storage.subfolders(root / "data", f"{dataset or '*'}/*/*")
    return [p for p in folders if _is_data_folder(p) and p.resolve() not in named]


def _is_data_folder(folder: Path) -> bool:
    """Whether a folder holds a stage's data, of this version or an earlier one; users keep files below `data/` too."""
    ours = re.fullmatch("[a-z_]+/[0-9a-f]{16}", f"{folder.parent.name}/{folder.name}")
    return bool(ours and not folder.is_symlink() and storage.entries(folder) <= OWN_FOLDERS)


def remove_data(folder: Path) -> bool:
    """Remove what a stage wrote into a folder, and the folder if nothing else is in it.

    False where a run is writing to it, or on a store was killed there and left its claim.
    """
    if storage.url_of(folder) and storage.CLAIM in storage.entries(folder):
        return False
    try:  # of an object store, it may never have been on this machine
        with storage.locked(folder):
            for name in storage.entries(folder) & OWN_FOLDERS:
                storage.remove(folder / name)
            if not storage.entries(folder):
                storage.remove(folder)
    except UsageError:
        return False
    return True


def _needed(root: Path) -> dict[str, list[Path]]:
    """The versions that a project's current manifests are, were made from or were run against, with these manifests."""
    needed: dict[str, list[Path]] = {}
    for path, current in _current(root):
        for _, manifest in ancestors(path, against=True) if current else ():
            needed.setdefault(manifest.version, []).append(path)
    return needed


@dataclass(frozen=True, slots=True)
class OldVersion:
    """A version whose shards may go: an old one, or a newest one before a stage; or one that another dataset needs."""

    path: Path
    manifest: Manifest
    folder: Path
    needed_by: Path | None = None
    """A current manifest of another dataset that was made from it, or was run against it."""

    @property
    def bytes(self) -> int:
        """What its removal would free: files that no other version has."""
        return _own_bytes(self.folder)


def old_versions(root: Path, dataset: str | None, before: str = "") -> list[OldVersion]:
    """The versions in the history of a dataset (None: of all) whose shards are still on the disk.

    With `before`, first the newest results of the stages before that one: what its result was made from, and other
    results of the stages that come before it in recipes.

    Raises:
        ManifestError: a manifest cannot be read; nothing may be removed then.
        UsageError: the dataset has no result of the stage `before`.
    """
    last, order, made_from = root / "manifests" / f"{dataset}" / f"{before}.json", list(STAGES), set[str]()
    if before and not last.is_file():
        raise UsageError(f"{last}: is not there: {dataset} has no result of the stage {before!r}")
    if before:
        made_from = {m.version for _, m in ancestors(last)[1:]}
    needed, folders, own, found = _needed(root), set(), set(), []
    for path, current in _current(root):
        folders.add(_folder_of(path, current))
        if current and dataset in (None, path.parent.name):
            own |= {m.version for _, m in ancestors(path) if m.dataset == current.dataset}
    for path, manifest in _manifests(root, dataset):
        if manifest is None:
            continue
        folder, users = _folder_of(path, manifest), needed.get(manifest.version, [])
        if path.parent.name == "history":
            goes = manifest.version not in own and folder not in folders
        else:
            earlier = before and manifest.stage in order[: order.index(before)]
            goes, users = earlier or manifest.version in made_from, [p for p in users if p.parent.name != dataset]
        if goes and storage.exists(folder):
            found.append(OldVersion(path, manifest, folder, users[0] if users else None))
    return found


def _own_bytes(folder: Path) -> int:
    """The bytes of a folder's files that are in no other folder (hard links share them)."""
    if storage.url_of(folder) is not None:
        return sum(storage.sizes(folder).values())
    return sum(s.st_size for f in folder.rglob("*") if f.is_file() and (s := f.stat()).st_nlink == 1)


def in_parents(output: Path) -> Iterator[OldVersion]:
    """The results of the earlier stages that an `--output` folder carries in `parents/`, if their shards are there.

    Raises:
        ManifestError: the folder has no manifest.
    """
    parents = (output / "parents").resolve()
    for path, manifest in ancestors(output / "manifest.json")[1:]:
        folder = path.parent
        if folder.resolve().parent == parents and storage.entries(folder) & OWN_FOLDERS:
            yield OldVersion(path, manifest, folder)


def purge(old: OldVersion) -> bool:
    """Remove the shards of an old version and mark its manifests as purged; False where a run is writing there.

    The manifests stay. `verify` then reports the version as purged.
    """
    folder = old.path.parent if old.path.parent.name == "history" else old.path.parent / "history"
    for path in (old.path, *folder.glob("*.json")):  # another version may have had the same folder
        found = None if path.name.endswith(".run.json") else load_readable(path)
        if found is not None and data_dir(path, found) == old.folder:
            run = load_run(path) | {"purged": time.strftime("%Y-%m-%d", time.gmtime())}
            storage.write_whole(run_file(path), (json.dumps(run, indent=1, sort_keys=True) + "\n").encode())
    return remove_data(old.folder)


# Compiling the kernels: every stage is run on a few made rows, by the recipes of `compile.toml`.


@cache
def _made() -> dict[str, Any]:
    """The table of what is run."""
    return tomllib.loads(Path(__file__).with_name("compile.toml").read_text(encoding="utf-8"))


def compile_kernels(tell: Callable[[str], None]) -> None:
    """Compile the kernels of all stages, in two processes where there are two cores; `tell` gets a line for each step.

    A step whose model or package is not installed is left out, and `tell` says so.
    """
    steps = len(_made()["step"])
    with tempfile.TemporaryDirectory(prefix="datakit-compile-") as scratch:
        for name, text in _made()["files"].items():
            Path(scratch, name).write_text(text, encoding="utf-8")
        work, pool = partial(_compile, Path(scratch)), Local(min(2, all_cores()))
        found = chain([work(0)], pool.map(work, range(1, steps), processes=True))
        for number, line in enumerate(found, 1):
            tell(f"compiled {number}/{steps}: {line}")


def _compile(root: Path, number: int, rows: Iterable[dict[str, Any]] = ()) -> str:
    """Run the stages of a step on `rows`, or on those made for it; returns what there is to say."""
    step, name = _made()["step"][number], f"step-{number}"
    with contextlib.chdir(root):
        rows = rows or _rows(step["rows"], _made()["text"])
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        Path(f"{name}.jsonl").write_text("".join(lines), "utf-8")
        run = Run(layout=OutputLayout(root=root, dataset=name), executor=Local(1), progress=Progress())
        tables = _made()["values"] | step.get("values", {})
        recipe = Recipe(dataset=name, inputs=(f"{name}.jsonl",), stages=tuple(step["stages"]), tables=tables)
        try:
            Flow(run=run, recipe=recipe).all()
        except (ModelError, MissingExtraError) as e:
            return f"{step['title']} is left out: {e}"
    return str(step["title"])


def _rows(kind: str, words: str) -> Iterator[dict[str, Any]]:
    """Made rows of a kind, for the kernels' types and for each way through them."""
    if kind == "documents":
        for n in range(24):
            text = words * (1 + n % 3) + f"Row {n} says something of its own: {n * 7919} {'x' * n}."
            yield {"text": text, "url": f"https://example.org/{n // 2}"}
    elif kind == "lines":  # of more than a third of `seq_len`: two fit in a row, and the slowest search for a fit runs
        for n in range(40):
            yield {"text": f"{n * 7919 % 10**6:06d} {n * 104729 % 10**12:012d} rows"}
    elif kind == "pairs":
        for n in range(8):
            yield {"prompt": f"{n}? {words}", "chosen": f"Yes, {n}. {words[n:]}", "rejected": f"No. {words[n * 20 :]}"}
    else:
        for n in range(78):
            asked = words if n < 8 else f"Write about b{chr(97 + n % 26)}{chr(97 + n // 26)}ok words"
            answered = {"role": "assistant", "content": f"{words[n * 9 :]} {n}" if n < 8 else "It is done."}
            head = [{"role": "system", "content": "Be brief."}] * (n < 8)
            yield {"messages": [*head, {"role": "user", "content": asked}, answered]}
