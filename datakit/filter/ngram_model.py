"""Training a language model for the perplexity stage: the rows of a dataset to an n-gram model in the ARPA format.

CCNet (Wenzek et al. 2020) trains such models on Wikipedia, one for each language. The estimation is `kneser_ney`; this
file turns rows into sentences, as the perplexity stage reads them.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa

from datakit.config import option, sha256_file
from datakit.data import view
from datakit.errors import ConfigError
from datakit.filter.perplexity import MODEL, STAGE, TOKENIZER, load_tokenizer, sentence_reader
from datakit.manifest import Count, tokenizer_file
from datakit.stage import Made, Parent, Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class NgramModelConfig:
    """What the model learns from, and what it stores."""

    order: int = option(5, "words of the longest n-gram, 2 to 5")
    prune: tuple[int, ...] = option(
        (), "by order, drop n-grams that occur at most so often; the last one is for higher orders: 0,0,1 as lmplz's"
    )
    tokenizer: str = option("", "a tokenizer.json, or its folder; then its ids count as words", path=True)
    text: Literal["plain", "raw"] = option("plain", "what the model reads: lower case, digits as 0, ..., or rows as is")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a row to learn from")
    include_system: bool = option(False, "learn from system prompts, tool schemas and tool results too")
    memory_mb: int = option(
        1024, "sort in this much memory, beside the vocabulary; the disk has the rest", result=False
    )

    def __post_init__(self) -> None:
        if not 2 <= self.order <= 5:
            raise ConfigError(f"order = {self.order}: expected 2 to 5 words")
        if len(self.prune) > self.order or any(b < a for a, b in zip((0, *self.prune), self.prune, strict=False)):
            raise ConfigError(
                f"prune = {list(self.prune)}: expected up to {self.order} counts, none lower than the one before it"
            )
        if self.prune[:1] > (0,):
            raise ConfigError(f"prune = {list(self.prune)}: words are never dropped; expected 0 first, as in 0,0,1")
        if self.memory_mb < 1:
            raise ConfigError(f"memory_mb = {self.memory_mb}: expected 1 or more")


@dataclass(frozen=True, slots=True)
class TrainNgramModel(Stage):
    """Estimates an n-gram model from all rows: `kept/model.arpa`, and `kept/tokenizer.json` if words are ids."""

    name: ClassVar[str] = STAGE
    help: ClassVar[str] = (
        "The result is a folder with model.arpa and the settings of its text. KenLM reads it: name the folder in "
        "`datakit perplexity --models en=FOLDER`."
    )
    Config: ClassVar[type] = NgramModelConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    makes_rows: ClassVar[bool] = False

    config: NgramModelConfig = field(default_factory=NgramModelConfig)

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the tokenizer.

        Raises:
            ModelError: it does not exist.
        """
        if not self.config.tokenizer:
            return {}
        path = tokenizer_file(self.config.tokenizer)
        return {"tokenizer": {"name": path.name, "sha256": sha256_file(path)}}

    def open(self) -> None:
        """Load the tokenizer.

        Raises:
            ModelError: the file is no tokenizer.
        """
        if self.config.tokenizer:
            load_tokenizer(tokenizer_file(self.config.tokenizer))

    def output_kind(self, kind: str) -> str:
        """A model."""
        return "model"

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the model.

        Raises:
            InputError: the rows hold no word, or more different words than the order allows.
        """
        from datakit.filter.kneser_ney import estimate

        (folder / MODEL).parent.mkdir(parents=True, exist_ok=True)
        found = estimate(
            self._texts(rows),
            folder / MODEL,
            order=self.config.order,
            min_pruned=self.config.prune,
            folder=folder,
            memory_bytes=self.config.memory_mb << 20,
            threads=min(len(os.sched_getaffinity(0)), 4),
        )
        files = [MODEL]
        if self.config.tokenizer:
            shutil.copyfile(tokenizer_file(self.config.tokenizer), folder / TOKENIZER)
            files.append(TOKENIZER)
        count = parents[0].manifest.ledger.rows.kept
        return Made(files=tuple(files), rows=Count(into=count, kept=count), facts={"ngram_model": asdict(found)})

    def _texts(self, rows: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        read = sentence_reader(
            self.config.text, tokenizer_file(self.config.tokenizer) if self.config.tokenizer else None
        )
        for batch in rows:
            for text in view(batch, self.config.on, self.config.include_system).to_pylist():
                if text:
                    yield read(text).encode()
