"""datatrove's MinHash deduplication, its four stages over a folder of JSONL files with `id` and `text`.

    python minhash_datatrove.py FOLDER OUTPUT WORKERS      # environment: requirements-datatrove.txt

Its defaults (FineWeb's 14 x 8 values, 5-grams of spaCy words), 64-bit hashes. One task per file, as it splits no file.
"""

import sys

from datatrove.pipeline.readers import JsonlReader
from datatrove_stages import files_of, minhash, run


def main(folder: str, output: str, workers: int) -> None:
    read = JsonlReader(folder, glob_pattern="*.jsonl")
    run(minhash(read, f"{output}/kept", output, files_of(folder)), f"{output}/logs", workers)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
