"""Runs the training of a classifier: `filter.classifier.TrainClassifier`, until the engine runs it itself."""

from dataclasses import asdict
from os.path import relpath
from pathlib import Path
from typing import Any, Final

from datakit.config import resolved
from datakit.errors import UsageError
from datakit.filter.classifier import Examples, TrainClassifier, TrainConfig
from datakit.manifest import Count, Ledger, Shard
from datakit.run.job import Job, Run
from datakit.run.lineage import RawHashes, parent_entry
from datakit.run.work import Result
from datakit.write import entry

STAGE: Final = TrainClassifier.name
MODEL: Final = "kept/model.bin"


def train_classifier(run: Run, examples: Examples, config: TrainConfig) -> Path:
    """Train a classifier; returns its manifest, which the classify stage takes as its model."""
    stage = TrainClassifier(config=config, examples=examples)
    job = _job(run, stage)
    if job.current():
        return job.manifest
    with job.work() as work:

        def make(_: int, __: Any) -> Result:
            made = stage.make(iter(()), work.folder, ())
            (job.data / MODEL).parent.mkdir(parents=True, exist_ok=True)
            (work.folder / MODEL).replace(job.data / MODEL)
            shard = entry(job.data, MODEL)
            return {
                "shards": [asdict(shard)],
                "files": [[shard.path, shard.bytes]],
                "rows": made.rows.into,
                "count": made.rows.to_json(),
                "facts": made.facts,
            }

        (result,) = work.phase("train", make, [(0, None)], title=STAGE, units=1)
        ledger = Ledger(Count.from_json(result["count"]))
        return job.close(work, ledger=ledger, shards=[Shard(**s) for s in result["shards"]], facts=result["facts"])


def _job(run: Run, stage: TrainClassifier) -> Job:
    hashes, target = RawHashes(), run.place.manifest(STAGE).parent
    parents = [parent_entry(p.path, p.manifest) for p in stage.parents()]
    lay: dict[str, dict[str, str]] = {
        "parents": {p.manifest.version: relpath(p.path, target) for p in stage.parents()},
        "raw": {},
    }
    for file in stage.sources():
        if file.name in lay["raw"]:
            raise UsageError(f"two files of the examples have the name {file.name!r}")
        parents.append({"raw": file.name, "bytes": file.bytes, "sha256": hashes.of(Path(file.path))})
        lay["raw"][file.name] = relpath(file.path, target)
    hashes.save()
    settled, resources = resolved(stage.config), stage.resources()
    return Job(
        run=run,
        stage=STAGE,
        kind="model",
        config=settled,
        parents=tuple(parents),
        lay=lay,
        resources=resources,
    )
