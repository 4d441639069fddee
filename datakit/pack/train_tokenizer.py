"""Trains a byte-level BPE tokenizer (Sennrich et al. 2016; on bytes, Radford et al. 2019) with a ChatML template.

The special tokens have the first ids: 0 `<|endoftext|>`, 1 `<|im_start|>`, 2 `<|im_end|>`. `<|im_end|>` is `eos_token`:
it ends turns and documents, so a model that is pretrained on text and fine-tuned on conversations has one stop token.
`<|endoftext|>` is used for padding only, so padding is never an end.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pyarrow as pa
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from datakit.config import at_least, option
from datakit.data import view
from datakit.errors import InputError
from datakit.manifest import Count
from datakit.pack.chat import built_in
from datakit.stage import Made, Parent, Stage

TOKENIZER = "kept/tokenizer"
PAD, BOS, EOS = SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """Settings of the training of a tokenizer."""

    vocab_size: int = option(6400, "number of tokens, with the special tokens and the 256 bytes")
    min_frequency: int = option(2, "merge a pair of tokens if it occurs at least this often")
    max_chars: int = option(200_000_000, "train on the first so many characters of the dataset; 0: on all")

    def __post_init__(self) -> None:
        at_least(self, 256 + len(SPECIAL), "vocab_size")
        at_least(self, 1, "min_frequency")
        at_least(self, 0, "max_chars")


def train_tokenizer(texts: Iterable[str], config: TokenizerConfig) -> dict[str, bytes]:
    """Train a tokenizer on texts; returns the files `tokenizer.json` and `tokenizer_config.json`, by name.

    The same texts give the same bytes.

    Raises:
        InputError: there is no text to train on.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    chars = 0

    def sample() -> Iterator[str]:
        """The texts, up to the one that reaches the limit."""
        nonlocal chars
        for text in texts:
            chars += len(text)
            yield text
            if 0 < config.max_chars <= chars:
                return

    tokenizer.train_from_iterator(sample(), trainer)
    if not chars:
        raise InputError("tokenizer: the rows have no text to train on")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "unk_token": PAD,
        "clean_up_tokenization_spaces": False,
        "chat_template": built_in("chatml"),
    }
    config_json = json.dumps(settings, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    return {"tokenizer.json": tokenizer.to_str(pretty=True).encode(), "tokenizer_config.json": config_json.encode()}


@dataclass(frozen=True)
class TrainTokenizer(Stage):
    """The stage: trains a tokenizer on the text of all rows, with system prompts."""

    name: ClassVar[str] = "tokenizer"
    Config: ClassVar[type] = TokenizerConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    makes_rows: ClassVar[bool] = False

    config: TokenizerConfig

    def describe(self) -> tuple[str, ...]:
        """How much is trained on, since nothing can be said while it trains."""
        size, most = self.config.vocab_size, self.config.max_chars
        return (f"tokenizer: trains {size:,} tokens on at most {most:,} characters, a minute or more for 100 million",)

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write `kept/tokenizer/tokenizer.json` and `kept/tokenizer/tokenizer_config.json`."""
        texts = (t for batch in rows for t in view(batch, "all", include_system=True).to_pylist())
        files = train_tokenizer(texts, self.config)
        (folder / TOKENIZER).mkdir(parents=True)
        for name, content in files.items():
            (folder / TOKENIZER / name).write_bytes(content)
        kept = parents[0].manifest.ledger.rows.kept
        return Made(files=tuple(f"{TOKENIZER}/{n}" for n in sorted(files)), rows=Count(into=kept, kept=kept))
