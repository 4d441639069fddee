"""Texts as vectors: models of sentence embeddings, read from a folder and computed with numpy alone.

Two kinds of models are known:

- static: the mean of one vector for each token (model2vec; sentence-transformers' StaticEmbedding; wordllama). Word
  order says nothing to them, and they need a table look-up a token;
- BERT (Devlin et al., 2019) in the format of sentence-transformers (Reimers and Gurevych, 2019): MiniLM, BGE, E5, GTE.
  A text longer than the model reads at one time is read in pieces; nothing is cut off.

Every text is computed by itself, so that a vector does not depend on the texts around it. Vectors have length 1 and are
rounded to 16-bit integers. Whatever is computed from them later is exact, in any order, with any number of threads.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import datakit.storage as storage
from datakit.dedup import _kernels_semantic as kernels
from datakit.errors import MissingExtraError, ModelError
from datakit.text.ids import open_tokenizer

Vectors = npt.NDArray[np.int16]

LANES = 16
"""Widths of vectors are filled up with zeros to a multiple of this."""

_UNREAD_SHARE = 0.25
"""A text is not read where more than this share of its tokens is unknown to the model or stands for single bytes."""

_SETTINGS = {
    "config": "config.json",
    "modules": "modules.json",
    "pooling": "1_Pooling/config.json",
    "limits": "sentence_bert_config.json",
}
_NUMBERS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I8": np.int8}


class EmbeddingModel(Protocol):
    """What makes vectors of texts."""

    def embed(self, texts: Sequence[str]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """(vectors int16 (texts, width) of length 32767, zero for a text without tokens; bool (texts,): it was read)"""
        ...


# Files.


def model_files(model: str) -> dict[str, Path]:
    """The files that a model is made of, by the name that messages and manifests use. "" is wordllama's.

    Raises:
        MissingExtraError: the package wordllama is not installed.
        ModelError: the folder is missing, or has no model of a known kind.
    """
    if not model:
        found = find_spec("wordllama")
        if found is None or found.origin is None:
            raise MissingExtraError(
                "dedup_semantic needs a model of embeddings: install datakit[semantic], whose package wordllama brings "
                "one for English, or name a folder in the format of sentence-transformers or model2vec (model)"
            )
        folder = Path(found.origin).parent
        names = {
            "weights": "weights/l2_supercat_256.safetensors",
            "tokenizer": "tokenizers/l2_supercat_tokenizer_config.json",
        }
        return _existing(folder, names, "the package wordllama is not as expected; version 0.4 has this file")
    folder = storage.here(model)
    if not folder.is_dir():
        raise ModelError(
            f"{model}: expected a folder with a model of embeddings, found none. Models are not downloaded"
        )
    for below in ("", "0_StaticEmbedding/"):
        if (folder / below / "model.safetensors").is_file():
            names = {"weights": f"{below}model.safetensors", "tokenizer": f"{below}tokenizer.json"}
            for name, file in _SETTINGS.items():
                if (folder / file).is_file():
                    names[name] = file
            return _existing(folder, names, "it belongs to the model")
    raise ModelError(
        f"{model}: expected a folder in the format of sentence-transformers or model2vec, with model.safetensors and "
        "tokenizer.json; found no model.safetensors"
    )


def _existing(folder: Path, names: dict[str, str], reason: str) -> dict[str, Path]:
    for file in names.values():
        if not (folder / file).is_file():
            raise ModelError(f"{folder / file}: is missing; {reason}")
    return {name: folder / file for name, file in names.items()}


@lru_cache(maxsize=2)
def load_model(model: str) -> EmbeddingModel:
    """The model of a folder, loaded once per process. Treat it as read-only.

    Raises:
        MissingExtraError: the package of the default model is not installed.
        ModelError: the folder is missing, or its model is damaged or of an unknown kind.
    """
    files = model_files(model)
    tensors, tokenizer = read_tensors(files["weights"]), open_tokenizer(str(files["tokenizer"]))
    settings = {name: _json(path) for name, path in files.items() if name not in ("weights", "tokenizer")}
    for name in ("embeddings", "embedding.weight"):
        if name in tensors:
            return StaticModel.of(tensors[name], tensors, tokenizer, files["weights"])
    kind = settings.get("config", {}).get("model_type")
    if kind != "bert":
        raise ModelError(
            f"{model}: expected a static model or one of model_type bert, found {kind!r}. Models of other kinds can be "
            "distilled to static ones with model2vec"
        )
    return BertModel.of(tensors, tokenizer, settings, model)


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All arrays of a safetensors file, floats as float32. The format: 8 bytes with the size of a JSON header that
    says where each array lies, the header, the arrays.

    Raises:
        ModelError: the file is damaged, or has numbers of an unknown type.
    """
    data = path.read_bytes()
    try:
        size = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + size]), memoryview(data)[8 + size :]
        return {name: _tensor(entry, body) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ModelError(f"{path}: cannot be read as a safetensors file ({e})") from None


def _tensor(entry: dict[str, Any], body: memoryview) -> npt.NDArray[Any]:
    begin, end = entry["data_offsets"]
    if entry["dtype"] == "BF16":
        values = (np.frombuffer(body[begin:end], "<u2").astype(np.uint32) << 16).view(np.float32)
    elif entry["dtype"] in _NUMBERS:
        values = np.frombuffer(body[begin:end], _NUMBERS[entry["dtype"]])
    else:
        raise ValueError(f"numbers of the type {entry['dtype']}")
    values = values.reshape(entry["shape"])
    return values.astype(np.float32) if values.dtype.kind == "f" else values


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as e:
        raise ModelError(f"{path}: cannot be read as JSON ({e})") from None


def _unread_tokens(tokenizer: Any) -> npt.NDArray[np.bool_]:
    """bool (vocabulary,): the token is the unknown one, or stands for a single byte (<0xE4>)."""
    unknown = np.zeros(tokenizer.get_vocab_size(), np.bool_)
    names = json.loads(tokenizer.to_str())["model"]
    for name, number in tokenizer.get_vocab().items():
        single = len(name) == 6 and name.startswith("<0x") and name.endswith(">")
        unknown[number] = single or name in (names.get("unk_token"), "[UNK]", "<unk>")
    if isinstance(names.get("unk_id"), int):
        unknown[names["unk_id"]] = True
    return unknown


def _to_vectors(means: npt.NDArray[np.float64]) -> Vectors:
    """Vectors of length 32767, filled up to a multiple of `LANES`."""
    made = np.zeros((len(means), -(-means.shape[1] // LANES) * LANES), np.int16)
    kernels.round_vectors(means, made)
    return made


# Models.


@dataclass(frozen=True, slots=True)
class StaticModel:
    """The mean of the vectors of a text's tokens.

    table float32 (rows, width); row_of int64 (vocabulary,): the row of each token; weight float64 (vocabulary,): 0 for
    tokens that do not count. unread bool (vocabulary,).
    """

    tokenizer: Any
    table: npt.NDArray[np.float32]
    row_of: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    unread: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, table: Any, tensors: dict[str, npt.NDArray[Any]], tokenizer: Any, path: Path) -> "StaticModel":
        """From a safetensors file: the table, and perhaps `weights` and `mapping` of tokens (model2vec).

        Raises:
            ModelError: the table has not a row for each token.
        """
        unread = _unread_tokens(tokenizer)
        tokens = len(unread)
        row_of = tensors.get("mapping", np.arange(tokens)).astype(np.int64)
        weight = tensors.get("weights", np.ones(tokens)).astype(np.float64)
        if table.ndim != 2 or min(len(row_of), len(weight)) < tokens or row_of[:tokens].max(initial=0) >= len(table):
            raise ModelError(f"{path}: has {len(table)} vectors, expected one for each of {tokens} tokens")
        return cls(tokenizer, np.ascontiguousarray(table), row_of[:tokens], weight[:tokens], unread)

    def embed(self, texts: Sequence[str]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """As `EmbeddingModel.embed`. Sums are in double precision, in the order of the tokens: equal on every host."""
        found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = np.concatenate([np.empty(0, np.int64), *(np.array(one.ids, np.int64) for one in found)])
        starts = np.concatenate(([0], np.cumsum([len(one.ids) for one in found], dtype=np.int64)))
        means, read = np.zeros((len(texts), self.table.shape[1])), np.empty(len(texts), np.bool_)
        kernels.sum_tokens(ids, starts, self.table, self.row_of, self.weight, self.unread, _UNREAD_SHARE, means, read)
        return _to_vectors(means), read


@dataclass(frozen=True, slots=True)
class BertModel:
    """A BERT encoder, and the mean of its last layer over all tokens of a text, or the vector of its first token.

    weights: by the names of Hugging Face, without a leading `bert.`. A text is read in pieces of at most `pieces`
    tokens, each between the special tokens `before` and `after`; the vectors of pieces are weighed by their tokens.
    """

    tokenizer: Any
    weights: dict[str, npt.NDArray[np.float32]]
    layers: int
    heads: int
    epsilon: float
    pieces: int
    first_token: bool
    before: tuple[int, ...]
    after: tuple[int, ...]
    unread: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, tensors: dict[str, Any], tokenizer: Any, settings: dict[str, Any], model: str) -> "BertModel":
        """From a folder's files.

        Raises:
            ModelError: the encoder has an activation, positions or a pooling that are not known here.
        """
        config, pooling = settings["config"], settings.get("pooling", {})
        modules = [str(m.get("type", "")).rsplit(".", 1)[-1] for m in settings.get("modules", [])]
        strange = [name for name in modules if name not in ("Transformer", "Pooling", "Normalize")]
        first_token = bool(pooling.get("pooling_mode_cls_token"))
        if not first_token and not pooling.get("pooling_mode_mean_tokens", True):
            strange.append("a pooling other than mean or cls")
        for name, usual in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
            if config.get(name, usual) != usual:
                strange.append(f"{name} {config[name]!r}")
        if strange:
            raise ModelError(f"{model}: {', '.join(strange)}: not known here; distil the model with model2vec instead")
        weights = {
            name.removeprefix("bert."): np.ascontiguousarray(t) for name, t in tensors.items() if t.dtype.kind == "f"
        }
        template = tokenizer.encode("a", add_special_tokens=True).ids
        plain = tokenizer.encode("a", add_special_tokens=False).ids
        at = next((i for i in range(len(template)) if template[i : i + len(plain)] == plain), 0)
        before, after = tuple(template[:at]), tuple(template[at + len(plain) :])
        positions = min(config["max_position_embeddings"], settings.get("limits", {}).get("max_seq_length") or 512)
        return cls(
            tokenizer, weights, config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"],
            positions - len(before) - len(after), first_token, before, after, _unread_tokens(tokenizer),
        )  # fmt: skip

    def embed(self, texts: Sequence[str]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """As `EmbeddingModel.embed`."""
        found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        read = np.array([self.unread[one.ids].mean() <= _UNREAD_SHARE if one.ids else True for one in found], np.bool_)
        width = self.weights["embeddings.word_embeddings.weight"].shape[1]
        means = np.zeros((len(texts), width))
        for mean, one in zip(means, found, strict=True):
            for begin in range(0, len(one.ids), self.pieces):
                piece = one.ids[begin : begin + self.pieces]
                hidden = self.hidden(np.array([*self.before, *piece, *self.after]))
                mean += (hidden[0] if self.first_token else hidden.mean(axis=0)) * len(piece)
        return _to_vectors(means), read

    def hidden(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The last layer: float32 (tokens, width)."""
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(self.layers):
            name = f"encoder.layer.{number}."
            q, k, v = (
                self._by_head(self._linear(x, f"{name}attention.self.{part}")) for part in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(q.shape[2]))
            scores = np.exp(scores - scores.max(axis=2, keepdims=True))
            scores /= scores.sum(axis=2, keepdims=True)
            mixed = (scores @ v).transpose(1, 0, 2).reshape(x.shape)
            x = self._norm(
                x + self._linear(mixed, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm"
            )
            inner = self._linear(x, f"{name}intermediate.dense")
            kernels.gelu(inner)
            x = self._norm(x + self._linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm")
        return x

    def _linear(self, x: npt.NDArray[np.float32], name: str) -> npt.NDArray[np.float32]:
        made: npt.NDArray[np.float32] = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return made

    def _by_head(self, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)

    def _norm(self, x: npt.NDArray[np.float32], name: str) -> npt.NDArray[np.float32]:
        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(self.epsilon))
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
