"""Texts as vectors: static models of embeddings (model2vec; sentence-transformers' StaticEmbedding; wordllama).

A text is the mean of one vector for each token: a look-up a token, and the order of words says nothing. Vectors of any
other model are computed by the user and come in as a column. Every text is computed by itself, so that a vector does
not depend on the texts around it. Vectors are rounded to 16-bit integers; what is computed from them later is exact, in
any order, with any number of threads.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import datakit.storage as storage
from datakit.errors import MissingExtraError, ModelError
from datakit.text.ids import open_tokenizer

Vectors = npt.NDArray[np.int16]

LANES = 16
"""Widths of vectors are filled up with zeros to a multiple of this."""

_UNREAD_SHARE = 0.25
"""A text is not read where more than this share of its tokens is unknown to the model or stands for single bytes."""


def model_files(model: str) -> dict[str, Path]:
    """The weights and the tokenizer of a model. "" is wordllama's.

    Raises:
        MissingExtraError: the package wordllama is not installed.
        ModelError: the folder is missing, or has no model.
    """
    names, reason = ("model.safetensors", "tokenizer.json"), "it belongs to the model"
    if model:
        places = (storage.here(model), storage.here(model) / "0_StaticEmbedding")
        folder = next((place for place in places if (place / names[0]).is_file()), None)
        if folder is None:
            raise ModelError(
                f"{model}: expected a folder with a static model of embeddings (sentence-transformers, model2vec), "
                "with model.safetensors and tokenizer.json; found no model.safetensors. Models are not downloaded"
            )
    else:
        found = find_spec("wordllama")
        if found is None or found.origin is None:
            raise MissingExtraError(
                "dedup_semantic needs a model of embeddings: install datakit[semantic], whose package wordllama brings "
                "one for English, or name a folder in the format of sentence-transformers or model2vec (model), or a "
                "column of vectors (column)"
            )
        folder = Path(found.origin).parent
        names = ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")
        reason = "the package wordllama is not as expected; version 0.4 has this file"
    files = dict(zip(("weights", "tokenizer"), (folder / name for name in names), strict=True))
    for file in files.values():
        if not file.is_file():
            raise ModelError(f"{file}: is missing; {reason}")
    return files


def to_vectors(means: npt.NDArray[np.floating[Any]]) -> Vectors:
    """Vectors of length 32767, filled up to a multiple of `LANES`; zero stays zero."""
    from datakit.dedup import _kernels_semantic as kernels

    made = np.zeros((len(means), -(-means.shape[1] // LANES) * LANES), np.int16)
    kernels.round_vectors(means.astype(np.float64), made)
    return made


@dataclass(frozen=True, slots=True)
class StaticModel:
    """The mean of the vectors of a text's tokens.

    table float32 (rows, width); row_of int64 (vocabulary,): the row of each token; weight float64 (vocabulary,): 0 for
    tokens that do not count. unread bool (vocabulary,): the token is the unknown one, or stands for a single byte.
    """

    tokenizer: Any
    table: npt.NDArray[np.float32]
    row_of: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    unread: npt.NDArray[np.bool_]

    @property
    def width(self) -> int:
        """The numbers of a vector."""
        return int(-(-self.table.shape[1] // LANES) * LANES)

    def embed(self, texts: Sequence[str]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """(vectors int16 (texts, width) of length 32767, zero for a text without tokens; bool (texts,): it was read)

        Sums are in double precision, in the order of the tokens: equal on every host.
        """
        from datakit.dedup import _kernels_semantic as kernels

        found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = np.concatenate([np.empty(0, np.int64), *(np.array(one.ids, np.int64) for one in found)])
        starts = np.cumsum([0, *(len(one.ids) for one in found)])
        means, read = np.zeros((len(texts), self.table.shape[1])), np.empty(len(texts), np.bool_)
        kernels.sum_tokens(ids, starts, self.table, self.row_of, self.weight, self.unread, _UNREAD_SHARE, means, read)
        return to_vectors(means), read


@lru_cache(maxsize=2)
def load_model(model: str) -> StaticModel:
    """The model of a folder, loaded once per process: a table, and perhaps `weights` and a `mapping` of the tokens
    (model2vec). Treat it as read-only.

    Raises:
        MissingExtraError: a package is not installed.
        ModelError: the folder is missing, or its model is damaged or of another kind.
    """
    files = model_files(model)
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise MissingExtraError("dedup_semantic reads models with safetensors: install datakit[semantic]") from None
    try:
        tensors = load_file(files["weights"])
    except Exception as e:  # the library has an exception of its own, and KeyError for numbers that numpy has not
        raise ModelError(f"{files['weights']}: cannot be read as a safetensors file of numpy's numbers ({e})") from None
    table = next((tensors[name] for name in ("embeddings", "embedding.weight") if name in tensors), None)
    if table is None:
        raise ModelError(
            f"{files['weights']}: expected the table of a static model (embeddings), found {', '.join(tensors)}. "
            "Distil another model with model2vec, or compute vectors yourself and name their column (column)"
        )
    tokenizer = open_tokenizer(str(files["tokenizer"]))
    unread = _unread_tokens(tokenizer)
    row_of = tensors.get("mapping", np.arange(len(unread))).astype(np.int64)[: len(unread)]
    weight = tensors.get("weights", np.ones(len(unread))).astype(np.float64)[: len(unread)]
    if table.ndim != 2 or min(len(row_of), len(weight)) < len(unread) or (row_of.view(np.uint64) >= len(table)).any():
        raise ModelError(f"{files['weights']}: has {len(table)} vectors, expected one for each of {len(unread)} tokens")
    return StaticModel(tokenizer, np.ascontiguousarray(table, np.float32), row_of, weight, unread)


def _unread_tokens(tokenizer: Any) -> npt.NDArray[np.bool_]:
    names, numbers = json.loads(tokenizer.to_str())["model"], tokenizer.get_vocab()
    unread = np.zeros(max(numbers.values(), default=-1) + 1, np.bool_)  # numbers may have gaps
    for name, number in numbers.items():
        single = len(name) == 6 and name.startswith("<0x") and name.endswith(">")
        unread[number] = single or name in (names.get("unk_token"), "[UNK]", "<unk>")
    if isinstance(names.get("unk_id"), int):
        unread[names["unk_id"]] = True
    return unread
