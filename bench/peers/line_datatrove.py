"""The whole line with datatrove's own stages: JSON lines {"id", "text"} -> language, dedup, filters, token ids.

    python line_datatrove.py FOLDER OUTPUT WORKERS TOKENIZER.json LID_MODEL

The environment is that of requirements-datatrove.txt.

Prints one JSON line with the seconds of each stage. Every stage writes what it keeps, as those of datakit do; its own
form of packing is the one long row of ids that the tokenizer stage writes.
"""

import json
import logging
import sys
import time
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.lid import FT176LID
from datatrove.utils.logging import logger


class LocalModel(FT176LID):
    """The model from a file; the original fetches it."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    @property
    def model(self):
        if self._model is None:
            from fasttext.FastText import _FastText

            self._model = _FastText(self._path)
        return self._model


def main(folder: str, output: str, workers: int, tokenizer: str, lid_model: str) -> None:
    logger.remove()
    logger.add(sys.stderr, level=logging.WARNING)
    files = len(list(Path(folder).glob("*.jsonl")))
    config = MinhashConfig(hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8)
    language = LanguageFilter(language_threshold=0.65)
    language.model = LocalModel(lid_model)
    at = {name: f"{output}/{name}" for name in ("language", "signatures", "buckets", "remove", "dedup", "filter")}
    first, second, third = (
        JsonlReader(folder, glob_pattern="*.jsonl"),
        JsonlReader(at["language"]),
        JsonlReader(at["dedup"]),
    )
    rules = [GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(), FineWebQualityFilter()]
    stages = [
        ("language", [first, language, JsonlWriter(at["language"])], files),
        ("dedup", [second, MinhashDedupSignature(output_folder=at["signatures"], config=config)], files),
        ("dedup", [MinhashDedupBuckets(at["signatures"], output_folder=at["buckets"], config=config)], 14),
        ("dedup", [MinhashDedupCluster(input_folder=at["buckets"], output_folder=at["remove"], config=config)], 1),
        ("dedup", [second, MinhashDedupFilter(input_folder=at["remove"]), JsonlWriter(at["dedup"])], files),
        ("filter", [third, *rules, JsonlWriter(at["filter"])], files),
        ("tokenize", [JsonlReader(at["filter"]), DocumentTokenizer(f"{output}/tokens", tokenizer)], files),
    ]
    seconds: dict[str, float] = {}
    for number, (name, pipeline, tasks) in enumerate(stages):
        start = time.perf_counter()
        LocalPipelineExecutor(
            pipeline=pipeline,
            tasks=tasks,
            workers=min(workers, tasks),
            logging_dir=f"{output}/log{number}",
            start_method="fork",  # children that are waited for, so that their processor time counts
        ).run()
        seconds[name] = seconds.get(name, 0) + time.perf_counter() - start
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
