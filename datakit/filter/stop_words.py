"""Stop words of languages other than English: how many different ones of its own language a row has.

The lists are those of stopwords-iso (MIT), from the package stopwordsiso; its version is among the filter stage's
resources. A language that is written without spaces has no list here: whole words cannot be found in it. Words are
those of dedup (letters, marks and digits, case-folded), so that "l'eau" has "l" and "eau".
"""

import functools
import importlib.metadata
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.text.words import hash_words, split_words

_LEFT_OUT: Final = frozenset({"en", "ja", "th", "zh", "ku"})
"""English has Gopher's list. The list of Kurdish is for Sorani, and models write `ku` for Kurmanji, too."""

_ISO_639_3: Final = {
    "afr": "af", "arb": "ar", "ara": "ar", "bul": "bg", "ben": "bn", "bre": "br", "cat": "ca", "ces": "cs", "dan": "da",
    "deu": "de", "ell": "el", "epo": "eo", "spa": "es", "est": "et", "ekk": "et", "eus": "eu", "fas": "fa", "pes": "fa",
    "fin": "fi", "fra": "fr", "gle": "ga", "glg": "gl", "guj": "gu", "hau": "ha", "heb": "he", "hin": "hi", "hrv": "hr",
    "hun": "hu", "hye": "hy", "ind": "id", "ita": "it", "kor": "ko", "lat": "la", "lit": "lt", "lav": "lv",
    "lvs": "lv", "mar": "mr", "msa": "ms", "zsm": "ms", "nld": "nl", "nor": "no", "nob": "no", "nno": "no", "nn": "no",
    "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl", "som": "so", "sot": "st", "swe": "sv",
    "swa": "sw", "swh": "sw", "tgl": "tl", "fil": "tl", "tur": "tr", "ukr": "uk", "urd": "ur", "vie": "vi", "yor": "yo",
    "zul": "zu",
}  # fmt: skip
"""Other codes of models for the lists' languages."""

UNKNOWN, NONE = -1, -2
"""In place of a language's number: the language is unknown; it is English, or has no list."""


@dataclass(frozen=True, slots=True)
class StopWords:
    """The words of all lists, in a hash table: `masks[i]` has the languages in which word i is a stop word, as bits."""

    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    masks: NDArray[np.uint64]


def version() -> str | None:
    """The version of the lists; None without the package."""
    return importlib.metadata.version("stopwordsiso") if _package() else None


@functools.cache
def languages() -> tuple[str, ...]:
    """The languages with a list, English left out; none without the package."""
    return tuple(sorted(set(_package().langs()) - _LEFT_OUT)) if _package() else ()


def language_of(label: str | None) -> str | None:
    """The language of a model's label, as the lists name it: "deu_Latn" is "de"; None for a language without a list."""
    code = re.split("[_-]", label or "")[0]
    code = _ISO_639_3.get(code, code)
    return code if code in languages() else None


def count(texts: pa.Array, labels: pa.Array) -> NDArray[np.int64]:
    """int64[N]: how many different stop words of its language each row has; 0 for English and languages without a list.

    `labels` is string[N], the rows' languages. A row without one counts for the language that it has most words of.
    """
    from datakit.filter import _kernels_lookup

    numbers = numbered(labels)
    of, counts = np.flatnonzero(numbers != NONE), np.zeros(len(texts), np.int64)
    if len(of) and languages():
        known = lists()
        words, starts = hash_words(texts.take(pa.array(of)) if len(of) < len(texts) else texts)
        counts[of] = _kernels_lookup.count_stop_words(
            words, starts, numbers[of], known.slots, known.numbers, known.masks
        )
    return counts


def numbered(labels: pa.Array) -> NDArray[np.int64]:
    """int64[N]: the index of each label's language in `languages()`, or UNKNOWN, or NONE."""
    encoded = pc.dictionary_encode(labels.cast(pa.string()))
    known = {name: place for place, name in enumerate(languages())}
    of = np.array([known.get(language_of(label) or "", NONE) for label in encoded.dictionary.to_pylist()] + [UNKNOWN])
    return np.asarray(of[pc.fill_null(encoded.indices, len(of) - 1).to_numpy(zero_copy_only=False)])


def refused(names: tuple[str, ...]) -> str | None:
    """Why the languages that a config names are refused; None if they are not."""
    for name in names:
        if name not in ("all", "en", *languages()):
            there = f"there are lists for en, {', '.join(languages())}" if languages() else "install stopwordsiso"
            return f"stop_words: there is no list of stop words for {name!r}; {there}"
    return None


@functools.cache
def lists() -> StopWords:
    """All lists, read once per process. Entries that are several words in our sense are left out."""
    from datakit.filter import _kernels_lookup

    found: dict[str, int] = {}
    for place, language in enumerate(languages()):
        for entry in _package().stopwords(language):
            words = split_words(entry)
            if len(words) == 1 and any(c.isalpha() for c in words[0]):
                found[words[0]] = found.get(words[0], 0) | 1 << place
    hashes, _ = hash_words(pa.array(sorted(found)))
    masks = np.array([found[word] for word in sorted(found)], np.uint64)
    slots, numbers = _kernels_lookup.table_of(hashes)
    return StopWords(slots, numbers, masks)


def _package() -> Any:
    try:
        import stopwordsiso
    except ImportError:
        return None
    return stopwordsiso
