"""Stop words of languages other than English: how many different ones of its own language a row has.

The lists are those of stopwords-iso (MIT), from the package stopwordsiso; its version is among the filter stage's
resources. A language that is written without spaces has no list here: whole words cannot be found in it. Words are
those of dedup (letters, marks and digits, case-folded), so that "l'eau" has "l" and "eau".
"""

import functools
import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.text.words import hash_words, split_words

_LEFT_OUT: Final = frozenset({"en", "ja", "th", "zh", "ku"})
"""English has Gopher's list. The list of Kurdish is for Sorani, and models write `ku` for Kurmanji, too."""

_NAMES_OF_LISTS: Final = {"nb": "no", "nn": "no", "fil": "tl"}
"""ISO 639 codes of languages whose list has another code: one list for both forms of Norwegian; Filipino as Tagalog."""

UNKNOWN_LANGUAGE, NO_LIST = -1, -2
"""In place of a language's number: the language is unknown; it is English, or has no list."""


@functools.cache
def stop_word_languages() -> tuple[str, ...]:
    """The languages with a list, English left out."""
    import stopwordsiso

    return tuple(sorted(set(stopwordsiso.langs()) - _LEFT_OUT))


@functools.cache
def short_code(label: str) -> str:
    """A language's label as the lists name it: "deu_Latn" is "de", "cmn" is "zh" (IANA's registry, from langcodes)."""
    from langcodes import standardize_tag

    code = re.split("[_-]", label)[0].lower()
    try:
        code = standardize_tag(code, macro=True)
    except ValueError:  # no code of a language: the name of a user's list, say
        return code
    return _NAMES_OF_LISTS.get(code, code)


def count_stop_words(texts: pa.Array, labels: pa.Array) -> NDArray[np.int64]:
    """int64[N]: how many different stop words of its language each row has; 0 for English and languages without a list.

    `labels` is string[N], the rows' languages. A row without one counts for the language that it has most words of.
    """
    from datakit.filter import _kernels_lookup

    numbers = language_numbers(labels)
    of, counts = np.flatnonzero(numbers != NO_LIST), np.zeros(len(texts), np.int64)
    if len(of):
        words, starts = hash_words(texts.take(pa.array(of)) if len(of) < len(texts) else texts)
        counts[of] = _kernels_lookup.count_stop_words(words, starts, numbers[of], *stop_word_lists())
    return counts


def language_numbers(labels: pa.Array) -> NDArray[np.int64]:
    """int64[N]: the index of each label's language in `stop_word_languages()`, or UNKNOWN_LANGUAGE, or NO_LIST."""
    encoded = pc.dictionary_encode(labels.cast(pa.string()))
    known = {name: place for place, name in enumerate(stop_word_languages())}
    numbers = [known.get(short_code(label), NO_LIST) for label in encoded.dictionary.to_pylist()]
    of = np.array([*numbers, UNKNOWN_LANGUAGE])
    return np.asarray(of[pc.fill_null(encoded.indices, len(of) - 1).to_numpy(zero_copy_only=False)])


@functools.cache
def stop_word_lists() -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint64]]:
    """All lists, read once per process: (slots, numbers, masks), the hash table of their words (`table_of`), and for
    each word the languages in which it is a stop word, as bits. Entries that are several words for us are left out."""
    import stopwordsiso

    from datakit.filter import _kernels_lookup

    found: dict[str, int] = {}
    for place, language in enumerate(stop_word_languages()):
        for entry in stopwordsiso.stopwords(language):
            words = split_words(entry)
            if len(words) == 1 and any(c.isalpha() for c in words[0]):
                found[words[0]] = found.get(words[0], 0) | 1 << place
    hashes, _ = hash_words(pa.array(sorted(found)))
    masks = np.array([found[word] for word in sorted(found)], np.uint64)
    return *_kernels_lookup.table_of(hashes), masks


@functools.cache
def common_words() -> NDArray[np.uint64]:
    """The hashes of the stop words of all languages, of single letters and of numbers with up to four digits."""
    import stopwordsiso

    entries = set().union(*(stopwordsiso.stopwords(language) for language in stopwordsiso.langs()))
    entries |= {chr(c) for c in range(ord("a"), ord("z") + 1)}
    entries |= {f"{n:0{d}d}" for d in range(1, 5) for n in range(10**d)}
    hashes, starts = hash_words(pa.array(sorted(entries)))
    return np.unique(hashes[starts[:-1][np.diff(starts) == 1]])
