"""datatrove's MinHash deduplication, its four stages over a folder of JSONL files with `id` and `text`.

    python minhash_datatrove.py FOLDER OUTPUT WORKERS      # environment: requirements-datatrove.txt

Its defaults (FineWeb's 14 x 8 values, 5-grams of spaCy words), 64-bit hashes. One task per file, as it splits no file.
"""

import logging
import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.logging import logger


def main(folder: str, output: str, workers: int) -> None:
    logger.remove()
    logger.add(sys.stderr, level=logging.WARNING)
    config = MinhashConfig(hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8)
    files = len(list(Path(folder).glob("*.jsonl")))
    read = JsonlReader(folder, glob_pattern="*.jsonl")
    signatures, buckets, remove = f"{output}/signatures", f"{output}/buckets", f"{output}/remove"
    stages = [
        ([read, MinhashDedupSignature(output_folder=signatures, config=config)], files),
        ([MinhashDedupBuckets(input_folder=signatures, output_folder=buckets, config=config)], config.num_buckets),
        ([MinhashDedupCluster(input_folder=buckets, output_folder=remove, config=config)], 1),
        ([read, MinhashDedupFilter(input_folder=remove), JsonlWriter(f"{output}/kept")], files),
    ]
    for number, (pipeline, tasks) in enumerate(stages):
        LocalPipelineExecutor(
            pipeline=pipeline,
            tasks=tasks,
            workers=min(workers, tasks),
            logging_dir=f"{output}/log{number}",
            start_method="fork",  # children that are waited for, so that their processor time counts
        ).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
