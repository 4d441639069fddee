"""Runs the two stages that write other files than tables of rows: training a tokenizer, and pack."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from datakit.errors import UsageError
from datakit.manifest import Count, Ledger, Manifest, Shard, data_dir, load
from datakit.pack.stage import Pack, PackConfig
from datakit.pack.train_tokenizer import TokenizerConfig, train_tokenizer
from datakit.engine.runner import Run, attach, begin, duplicate_of_dropped, tables
from datakit.engine.store import Result
from datakit.data import view
from datakit.engine.store import Split, read_shard, settle


def _rows(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    for shard in tables(manifest, "kept"):
        yield from read_shard(data_dir(path, manifest) / shard.path)


def train(run: Run, config: TokenizerConfig, parent: Path) -> Path:
    """Train a tokenizer on the text of the parent's kept rows; returns its manifest."""
    source, job = load(parent), begin(run, "tokenizer", [parent], config, {})
    if job.current():
        return job.manifest
    with job.work() as work:

        def make(_: int, __: Any) -> Result:
            texts = (t for b in _rows(parent, source) for t in view(b, "all", include_system=True).to_pylist())
            made = train_tokenizer(texts, config)
            shards = attach(job.data, {f"kept/tokenizer/{name}": content for name, content in made.items()})
            return {"shards": [asdict(s) for s in shards], "files": [[s.path, s.bytes] for s in shards]}

        (result,) = work.phase("train", make, [(0, None)], title="tokenizer", units=1)
        rows = Count(into=source.ledger.rows.kept, kept=source.ledger.rows.kept)
        return job.close(work, ledger=Ledger(rows), shards=[Shard(**s) for s in result["shards"]], facts={})


def tokenizer_folder(path: Path) -> Path:
    """The folder of the tokenizer that a manifest's result carries.

    Raises:
        UsageError: it carries none.
    """
    manifest = load(path)
    files = [s.path for s in manifest.of_role("kept") if s.path.endswith("tokenizer/tokenizer.json")]
    if not files:
        raise UsageError(f"{path}: the result of {manifest.stage} carries no tokenizer; tokenize it first")
    return (data_dir(path, manifest) / files[0]).parent


def pack(run: Run, config: PackConfig, parent: Path) -> Path:
    """Pack the parent's tokens into rows; returns the manifest that a trainer takes."""
    source, job = load(parent), begin(run, "pack", [parent], config, {})
    if job.current():
        return job.manifest
    if source.stage != "tokenize":
        raise UsageError(f"{parent}: pack works on the result of tokenize, found that of {source.stage}")
    with job.work() as work:
        aside = work.folder / "packed"

        def make(_: int, __: Any) -> Result:
            shutil.rmtree(aside, ignore_errors=True)
            return _pack(config, parent, source, aside, job.data)

        (result,) = work.phase("pack", make, [(0, None)], title="pack", units=1)
        made = [Shard(**s) for s in result["shards"]]
        notes = duplicate_of_dropped([parent], job.data, made)
        ledger = Ledger(Count.from_json(result["count"]), Count.from_json(result["tokens"]), notes)
        return job.close(work, ledger=ledger, shards=made, facts=result["facts"])


def _pack(config: PackConfig, parent: Path, source: Manifest, aside: Path, data: Path) -> Result:
    packed = Pack(config=config).run(_rows(parent, source), aside, source.facts["tokenizer"])
    shards = []
    for path in packed.files:
        (data / path).parent.mkdir(parents=True, exist_ok=True)
        shards.append(settle(aside / path, data / path, path, 0, None))
    folder = tokenizer_folder(parent)
    named = [Path(s.path).name for s in source.of_role("kept") if Path(s.path).parent.name == "tokenizer"]
    copies = {f"kept/tokenizer/{name}": (folder / name).read_bytes() for name in sorted(named)}
    shards += attach(data, copies)
    with Split(data, 0) as out:
        for batch in packed.dropped:
            out.write("dropped", batch)
        shards += out.close()
    size = sum(s.bytes for s in shards)
    facts = {
        "tokenizer": source.facts["tokenizer"] | {"files": sorted(copies)},
        **packed.sets,
        "packing": packed.facts,
    }
    return {
        "shards": [asdict(s) for s in shards],
        "files": [[s.path, s.bytes] for s in shards],
        "rows": packed.rows.into,
        "bytes": size,
        "count": packed.rows.to_json(),
        "tokens": packed.tokens.to_json(),
        "facts": facts,
    }
