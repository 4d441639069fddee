"""A quick start: files as they are, packed on the fly into the run's folder.

    python -m train.sft --data chats.jsonl --tokenizer path/to/tokenizer --seq-len 512 --preset tiny

`datakit pack` does it, as a command, with all that it checks and counts; datakit must be installed for that with its
dependencies. Where the same files were packed with the same values before, nothing is done again.
"""

import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from datakit.config import option
from datakit.errors import ConfigError, InputError, MissingExtraError, UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickConfig:
    """What to train on, instead of a manifest."""

    data: tuple[str, ...] = option(
        (), "files of `messages`, `text`, pairs or `ids` (JSONL and all that datakit reads), packed now"
    )
    tokenizer: str = option("", "tokenizer folder for --data; none: the one of --init")
    seq_len: int = option(512, "targets in a row that --data is packed into")

    def __post_init__(self) -> None:
        if self.seq_len < 1:
            raise ConfigError(f"seq_len must be at least 1, found {self.seq_len}")


def packed(config: QuickConfig, init: str, out: Path) -> Path:
    """The manifest of the packed files, under `out/data`.

    Raises:
        UsageError: no tokenizer.
        MissingExtraError: datakit's own dependencies are not installed.
        InputError: the files cannot be packed; datakit's message says why.
    """
    tokenizer = config.tokenizer or init
    if not tokenizer:
        raise UsageError("--data needs the tokenizer to pack with: name its folder with --tokenizer")
    if missing := [name for name in ("pyarrow", "numba", "tokenizers") if importlib.util.find_spec(name) is None]:
        raise MissingExtraError(
            f"--data packs files, which needs {', '.join(missing)}: install datakit, or use --manifest"
        )
    place = out / "data"
    command = [sys.executable, "-m", "datakit", "pack", *config.data, "--tokenizer", tokenizer]
    command += ["--seq-len", str(config.seq_len), "--output", str(place)]
    print(f"[train] packing {', '.join(config.data)} into {place}", flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"--data {','.join(config.data)}: {done.stderr.strip().removeprefix('datakit: ')}")
    print(done.stderr + done.stdout, end="", flush=True)  # what was kept, dropped and why
    return place / "manifest.json"
