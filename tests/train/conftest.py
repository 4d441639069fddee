"""Tiny packed sets, made through the format's own writer; commands in forked processes."""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from datakit.config import sha256_file
from datakit.manifest import Count, Ledger, Manifest, Shard, save
from datakit.pack.format import SOURCE_DTYPE, Block, Header, PackedWriter
from tests.train.runs import Forked
from train import sft

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PAD, EOS = 0, 2

torch.set_num_threads(1)  # models this small gain nothing from more, and lose much on a busy machine


Piece = tuple[list[int], list[int]]
"""One sequence: its ids, and the positions within it whose next token is a target."""
Row = list[Piece]


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    options = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, **options)
    tokenizer.train_from_iterator(["user assistant hello the cat sat on the mat"] * 5, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


Pack = Callable[..., Path]


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory, tokenizer_folder: Path) -> Pack:
    """pack(rows, seq_len=..., labelled=...) -> the path of a pack manifest."""

    def make(
        rows: Sequence[Row],
        seq_len: int,
        labelled: bool = True,
        vocab_size: int = 300,
        validation: Sequence[Row] = (),
        parts: int = 1,
        **header: int | str,
    ) -> Path:
        folder = tmp_path_factory.mktemp("packed")
        copies = folder / "kept" / "tokenizer"
        shutil.copytree(tokenizer_folder, copies)
        task = "sft" if labelled else "pretrain"
        fields = Header(
            task=task, seq_len=seq_len, pad_id=PAD, eos_id=EOS, vocab_size=vocab_size, labelled=labelled, **header
        )
        written = {"train": [], "validation": []}
        cuts = [len(rows) * n // parts for n in range(parts + 1)]
        split = [("train", rows[a:b]) for a, b in pairwise(cuts)]
        for name, part in (*split, ("validation", validation)):
            prefix = folder / "kept" / f"{name}-{len(written[name]):05d}"
            writer = PackedWriter(prefix, fields)
            for number, row in enumerate(part):
                _append(writer, number, row)
            written[name].append(writer.close() | {"prefix": f"kept/{prefix.name}"})
            if labelled:
                _write_labels(prefix, part)
        facts = {
            "packed": written["train"],
            "tokenizer": {
                "sha256": hashlib.sha256((copies / "tokenizer.json").read_bytes()).hexdigest(),
                "chat_template_sha256": hashlib.sha256(TEMPLATE.encode()).hexdigest(),
                "vocab_size": vocab_size, "pad_id": PAD, "eos_id": EOS, "bos_id": None,
                "files": ["kept/tokenizer/tokenizer.json", "kept/tokenizer/tokenizer_config.json"],
            },
        }  # fmt: skip
        if validation:
            facts["validation"] = written["validation"]
        key = hashlib.sha256(repr((rows, validation) if validation else rows).encode()).hexdigest()
        shards = tuple(
            Shard(str(f.relative_to(folder)), 0, f.stat().st_size, sha256_file(f))
            for f in sorted((folder / "kept").rglob("*")) if f.is_file()
        )  # fmt: skip
        manifest = Manifest(
            dataset="tiny", kind="tokens", stage="pack", key=key,
            parents=(), config={}, code="test", ledger=Ledger(Count()), shards=shards, facts=facts,
        )  # fmt: skip
        save(folder / "manifest.json", manifest, {})
        return folder / "manifest.json"

    return make


def _append(writer: PackedWriter, number: int, row: Row) -> None:
    lengths = np.array([len(ids) for ids, _ in row], np.int64)
    sources = np.zeros(len(row), SOURCE_DTYPE)
    sources["row_key"] = number * 100 + np.arange(len(row))
    sources["row"], sources["segment"], sources["tokens"] = number, np.arange(len(row)), lengths
    ids = np.array([i for piece, _ in row for i in piece], np.int32)
    writer.append(Block(ids, np.zeros(len(ids), bool), lengths, np.array([len(row)]), sources))


def _write_labels(prefix: Path, rows: Sequence[Row]) -> None:
    """The labels as they are given: wrong ones, too, which the writer cannot write."""
    starts = [np.cumsum([0] + [len(ids) for ids, _ in row]) for row in rows]
    labels = [
        [int(start) + place for start, (_, places) in zip(own, row, strict=False) for place in places]
        for own, row in zip(starts, rows, strict=True)
    ]
    counts = np.array([len(own) for own in labels], np.uint64)
    Path(f"{prefix}.lbl.bin").write_bytes(np.array([p for own in labels for p in own], "<i4").tobytes())
    Path(f"{prefix}.lbl.idx").write_bytes(np.stack([np.cumsum(counts) - counts, counts], 1).astype("<u8").tobytes())


def _random_piece(rng: np.random.Generator, length: int, vocab_size: int = 300) -> Piece:
    """Tokens that count up from a random one, so that there is something to learn; labels on the second half."""
    ids = (3 + (rng.integers(0, vocab_size - 3) + np.arange(length)) % (vocab_size - 3)).tolist()
    return ids, list(range(length // 2, length - 1))


def _random_rows(count: int, seq_len: int, seed: int = 0) -> list[Row]:
    """Rows of random sequences; every seventh row is short."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        room, row = (seq_len // 5 if i % 7 == 6 else seq_len + 1), []
        while room >= 4:
            length = min(room, int(rng.integers(4, max(5, seq_len // 2))))
            row.append(_random_piece(rng, length))
            room -= length
        rows.append(row)
    return rows


@pytest.fixture(scope="session")
def manifest(pack: Pack) -> Path:
    """50 labelled rows of up to 64 tokens."""
    return pack(_random_rows(50, 64), seq_len=64)


@pytest.fixture(scope="session")
def short_run(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two steps, to read and to start from."""
    out = tmp_path_factory.mktemp("short") / "run"
    options = ["--preset", "tiny", "--steps", "2", "--dtype", "fp32", "--threads", "1"]
    assert sft.main(["--manifest", str(manifest), "--out", str(out), *options]) == 0
    return out


@pytest.fixture(scope="session")
def base(short_run: Path) -> Path:
    """The checkpoint of that run."""
    return short_run / "checkpoints" / "step_00000002"


@pytest.fixture(scope="session")
def random_rows() -> Callable[..., list[Row]]:
    return _random_rows


@pytest.fixture
def forked(tmp_path: Path) -> Callable[[Callable[[], int]], Forked]:
    """forked(body) -> a process that runs it."""
    return lambda body: Forked(body, tmp_path / "forked.log")
