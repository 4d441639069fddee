"""What the scripts that run datatrove share: its stages one after another, and those of its MinHash deduplication."""

import logging
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.logging import logger

Stage = tuple[list[PipelineStep], int]
"""Steps, and the tasks that they are cut into."""


def files_of(folder: str) -> int:
    """One task per file, as datatrove splits none."""
    return len(list(Path(folder).glob("*.jsonl")))


def minhash(read: PipelineStep, kept: str, output: str, files: int) -> list[Stage]:
    """FineWeb's 14 x 8 values of 5-grams, with 64-bit hashes; what stays goes to the folder `kept`."""
    config = MinhashConfig(hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8)
    signatures, buckets, remove = f"{output}/signatures", f"{output}/buckets", f"{output}/remove"
    return [
        ([read, MinhashDedupSignature(output_folder=signatures, config=config)], files),
        ([MinhashDedupBuckets(input_folder=signatures, output_folder=buckets, config=config)], config.num_buckets),
        ([MinhashDedupCluster(input_folder=buckets, output_folder=remove, config=config)], 1),
        ([read, MinhashDedupFilter(input_folder=remove), JsonlWriter(kept)], files),
    ]


def run(stages: Iterable[Stage], logs: str, workers: int) -> float:
    """Run stages in order; returns the seconds that they take."""
    logger.remove()
    logger.add(sys.stderr, level=logging.WARNING)
    start = time.perf_counter()
    for number, (pipeline, tasks) in enumerate(stages):
        place = {"workers": min(workers, tasks), "logging_dir": f"{logs}/{number}"}
        # forked children are waited for, so that their processor time counts
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, start_method="fork", **place).run()
    return time.perf_counter() - start
