"""datatrove's deduplication of lines or of three-sentence spans, over a folder of JSONL.

    python levels_datatrove.py line|sentence FOLDER OUTPUT WORKERS      # environment: requirements-datatrove.txt

Its defaults but for: 64-bit hashes of lines and spans; lines of 5 words and more, spans of 10; a row keeps 50 words and
any number of sentences.
"""

import sys

from datatrove.pipeline.dedup import SentenceDedupFilter, SentenceDedupSignature, SentenceFindDedups
from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove_stages import Stage, files_of, run


def sentences(unit: str, read: JsonlReader, output: str, files: int) -> list[Stage]:
    config = SentDedupConfig(
        n_sentences=1 if unit == "line" else 3, split_sentences=unit == "sentence", only_dedup_in_index=False,
        min_num_sentences=0, min_words_to_remove_span=5 if unit == "line" else 10,
        hash_config=HashConfig(precision=64),
    )  # fmt: skip
    signatures, found = f"{output}/signatures", f"{output}/found"
    return [
        ([read, SentenceDedupSignature(output_folder=signatures, config=config)], files),
        ([SentenceFindDedups(data_folder=signatures, output_folder=found, config=config)], 1),
        ([read, SentenceDedupFilter(data_folder=found, config=config), JsonlWriter(f"{output}/kept")], files),
    ]


def main(unit: str, folder: str, output: str, workers: int) -> None:
    read = JsonlReader(folder, glob_pattern="*.jsonl")
    run(sentences(unit, read, output, files_of(folder)), f"{output}/logs", workers)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
