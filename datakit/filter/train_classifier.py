"""Trains a fastText model that tells wanted texts from others, and measures it on texts that it has not seen.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification. As a filter for pretraining data: DCLM (Li et al.
2024); trained from the scores of a larger model: SIEVE (Zhang et al. 2024).

The module trains, in a process of its own. With one thread it leaves nine tenths of its input matrix as it finds the
memory, so that two runs differ and some end in not-a-number: that process gets zeroed memory (glibc's
`MALLOC_PERTURB_`), and then equal texts give equal bytes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datakit.config import option
from datakit.errors import ConfigError, ModelError
from datakit.filter import fasttext_model

POSITIVE: Final = "positive"
NEGATIVE: Final = "negative"

_SCRIPT: Final = """
import json, sys, fasttext
lines, out, options = json.loads(sys.argv[1])
fasttext.train_supervised(lines, **options).save_model(out)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """What model to train, and how it is measured."""

    dev: float = option(0.1, "share of the rows that are held out to measure; rows with equal text stay together")
    piece_chars: int = option(2000, "train on pieces of at most so many characters, so that long rows teach more")
    max_pieces: int = option(20, "of each row, train on at most so many pieces, spread over it")
    dim: int = option(32, "dimensions of the vectors")
    word_ngrams: int = option(2, "the longest run of words with a vector of its own")
    bucket: int = option(200_000, "vectors that runs of words share by their hash")
    epochs: int = option(10, "passes over the pieces")
    learning_rate: float = option(0.2, "the step at the beginning; it falls to 0")
    threads: int = option(1, "training threads; more than one give another model each time")
    seed: int = option(0, "of the first vectors, and of which rows are held out")

    def __post_init__(self) -> None:
        if not 0 <= self.dev < 1:
            raise ConfigError(f"dev = {self.dev}: expected a share from 0 to below 1")
        for name in ("piece_chars", "max_pieces", "dim", "word_ngrams", "bucket", "epochs", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: expected 1 or more")
        if self.learning_rate <= 0 or self.seed < 0:
            raise ConfigError(
                f"learning_rate = {self.learning_rate}, seed = {self.seed}: expected more than 0, 0 or more"
            )


def held_out(content_hashes: pa.Array, config: TrainConfig) -> NDArray[np.bool_]:
    """bool[N]: the rows that only measure. A function of each row's content and the seed alone."""
    places = np.array([int(h[:8], 16) for h in content_hashes.to_pylist()], np.uint64)
    mixed = (places + np.uint64(config.seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    shares = (mixed >> np.uint64(40)).astype(np.float64) / 2**24
    return np.asarray(shares < config.dev)


def pieces(text: str, config: TrainConfig) -> Iterator[str]:
    """What a text is trained on: its words on one line, at most `max_pieces` pieces of `piece_chars` evenly over it."""
    line = " ".join(text.split())
    count = -(-len(line) // config.piece_chars)
    wanted = min(count, config.max_pieces)
    for i in range(wanted):
        start = i * count // wanted * config.piece_chars
        yield line[start : start + config.piece_chars]


def write_examples(texts: pa.Array, positive: NDArray[np.bool_], config: TrainConfig, out: TextIO) -> int:
    """Write the pieces of texts as the module reads them; how many."""
    written = 0
    for text, wanted in zip(texts.to_pylist(), positive.tolist(), strict=True):
        for piece in pieces(text, config):
            # a text that holds a label, or the end of a line, would be read as one
            clean = piece.replace(fasttext_model.LABEL, " ").replace("</s>", " ")
            out.write(f"{fasttext_model.LABEL}{POSITIVE if wanted else NEGATIVE} {clean}\n")
            written += 1
    return written


def train(lines: Path, out: Path, config: TrainConfig) -> None:
    """Train on a file of `write_examples` and save the model to `out`.

    Raises:
        ModelError: training failed, or ended in not-a-number.
    """
    options: dict[str, Any] = {
        "dim": config.dim,
        "wordNgrams": config.word_ngrams,
        "bucket": config.bucket,
        "epoch": config.epochs,
        "lr": config.learning_rate,
        "thread": config.threads,
        "seed": config.seed,
        "verbose": 0,
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps([str(lines), str(out), options])],
        env=os.environ | {"MALLOC_PERTURB_": "255"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not out.is_file():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ModelError(f"training the classifier failed: {last}; a smaller learning_rate helps against NaN")


@dataclass(frozen=True, slots=True)
class Quality:
    """How a model does on rows whose side is known, at the threshold 0.5."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    def to_json(self) -> dict[str, Any]:
        """The counts, and precision and recall rounded to 1e-3; null where there is nothing to divide by."""
        found, wanted = self.true_positive + self.false_positive, self.true_positive + self.false_negative
        return {
            "true_positive": self.true_positive,
            "false_positive": self.false_positive,
            "false_negative": self.false_negative,
            "true_negative": self.true_negative,
            "precision": round(self.true_positive / found, 3) if found else None,
            "recall": round(self.true_positive / wanted, 3) if wanted else None,
        }


def quality(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Quality:
    """Count what scores of 0.5 and more find."""
    said = scores >= 0.5
    return Quality(
        true_positive=int((said & positive).sum()),
        false_positive=int((said & ~positive).sum()),
        false_negative=int((~said & positive).sum()),
        true_negative=int((~said & ~positive).sum()),
    )
