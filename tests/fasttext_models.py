"""Small fastText models that tests train on the spot."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.processes import python

_TRAIN = """
import json, sys, fasttext
for name, (lines, options) in json.loads(sys.argv[1]).items():
    fasttext.train_supervised(lines, thread=1, verbose=0, **options).save_model(name + ".bin")
"""


def train(folder: Path, models: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Train each model, a name with (file of labelled lines, options), and save it as NAME.bin in the folder.

    With one thread, the module trains from memory that it never fills: a process whose memory begins as
    zeros keeps it from not-a-number.
    """
    python("-c", _TRAIN, json.dumps(models), cwd=folder, MALLOC_PERTURB_="255")
