"""A tokenizer for stages that count or compare its ids, outside of the tokenize stage and its templates."""

from functools import lru_cache
from typing import Any

from datakit.config import sha256_file
from datakit.errors import ModelError
from datakit.manifest import tokenizer_file


def tokenizer_digest(path: str) -> dict[str, str]:
    """What a tokenizer puts into the key of a stage.

    Raises:
        ModelError: the file is missing or no tokenizer.
    """
    open_tokenizer(path)
    return {"sha256": sha256_file(tokenizer_file(path))}


@lru_cache(maxsize=2)
def open_tokenizer(path: str) -> Any:
    """A tokenizer that adds nothing and cuts nothing.

    Raises:
        ModelError: the file is missing or no tokenizer.
    """
    from tokenizers import Tokenizer

    file = tokenizer_file(path)
    try:
        loaded = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as e:  # the library raises Exception itself
        raise ModelError(f"{file}: cannot be read as a tokenizer.json ({e})") from None
    loaded.no_truncation()
    loaded.no_padding()
    return loaded
