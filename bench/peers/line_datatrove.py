"""The whole line with datatrove's own stages: JSON lines {"id", "text"} -> language, dedup, filters, token ids.

    python line_datatrove.py FOLDER OUTPUT WORKERS TOKENIZER.json LID_MODEL

The environment is that of requirements-datatrove.txt.

Prints one JSON line with the seconds of each stage. Every stage writes what it keeps, as those of datakit do; its own
form of packing is the one long row of ids that the tokenizer stage writes.
"""

import json
import sys

from datatrove.pipeline import filters
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.lid import FT176LID
from datatrove_stages import Stage, files_of, minhash, run


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
    files = files_of(folder)
    language = filters.LanguageFilter(language_threshold=0.65)
    language.model = LocalModel(lid_model)
    at = {name: f"{output}/{name}" for name in ("language", "dedup", "filter")}
    read = JsonlReader(folder, glob_pattern="*.jsonl")
    gopher = [filters.GopherRepetitionFilter(), filters.GopherQualityFilter()]
    rules = [*gopher, filters.C4QualityFilter(), filters.FineWebQualityFilter()]
    stages: dict[str, list[Stage]] = {
        "language": [([read, language, JsonlWriter(at["language"])], files)],
        "dedup": minhash(JsonlReader(at["language"]), at["dedup"], output, files),
        "filter": [([JsonlReader(at["dedup"]), *rules, JsonlWriter(at["filter"])], files)],
        "tokenize": [([JsonlReader(at["filter"]), DocumentTokenizer(f"{output}/tokens", tokenizer)], files)],
    }
    print(json.dumps({name: run(steps, f"{output}/logs/{name}", workers) for name, steps in stages.items()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
