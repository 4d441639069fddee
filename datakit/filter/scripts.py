"""Which scripts languages are written in: a label that no letter of a row bears out is not believed.

A label may name its script itself, as GlotLID's do (`eng_Latn`, ISO 15924). For ISO 639 codes the table below says it;
it holds the languages of lid.176 that are not, or not only, written in Latin letters. A label of two or three letters
that is not in it is taken for a language in Latin letters; of any other label nothing is known.
"""

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.filter.fasttext_model import FastTextModel, Prediction

_CODES: Final = {
    "Arab": "Arabic", "Armn": "Armenian", "Beng": "Bengali", "Cyrl": "Cyrillic", "Deva": "Devanagari",
    "Ethi": "Ethiopic", "Geor": "Georgian", "Grek": "Greek", "Gujr": "Gujarati", "Guru": "Gurmukhi",
    "Hang": "Hangul", "Hani": "Han", "Hans": "Han", "Hant": "Han", "Hebr": "Hebrew", "Khmr": "Khmer",
    "Knda": "Kannada", "Laoo": "Lao", "Latn": "Latin", "Mlym": "Malayalam", "Mymr": "Myanmar", "Orya": "Oriya",
    "Sinh": "Sinhala", "Taml": "Tamil", "Telu": "Telugu", "Thaa": "Thaana", "Thai": "Thai", "Tibt": "Tibetan",
}  # fmt: skip
"""ISO 15924 codes as labels have them, and the names that regular expressions know."""

_LANGUAGES: Final = {
    "Arabic": "ar arz azb ckb fa lrc mzn pnb ps sd ug ur ku az kk ky tt uz ks",
    "Armenian": "hy",
    "Bengali": "as bn bpy",
    "Cyrillic": "av ba be bg ce cv kk krc kv ky lez mhr mk mn mrj myv os ru rue sah sr tg tt tyv uk xal"
    " az bs bxr hr ku sh tk ug uz ro",
    "Devanagari": "bh dty gom hi mai mr ne new sa sd hif",
    "Ethiopic": "am ti",
    "Georgian": "ka xmf",
    "Greek": "el",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    "Han": "ja ko wuu yue zh vi",
    "Hangul": "ko",
    "Hebrew": "he yi",
    "Hiragana": "ja",
    "Kannada": "kn",
    "Katakana": "ja",
    "Khmer": "km",
    "Lao": "lo",
    "Latin": "az bs crh gom hif hr ku kk ky mn ro sh sr tg tk tt ug uz vi",
    "Malayalam": "ml",
    "Myanmar": "my",
    "Oriya": "or",
    "Sinhala": "si",
    "Tamil": "ta",
    "Telugu": "te",
    "Thaana": "dv",
    "Thai": "th",
    "Tibetan": "bo",
}
"""By script, the languages written in it today; several have more than one."""


def of_label(label: str) -> frozenset[str]:
    """The scripts of a label's language; empty where nothing is known of it."""
    code = re.fullmatch(r"[a-z]{2,3}_([A-Z][a-z]{3})(_.*)?", label)
    if code:
        found = {"Jpan": {"Han", "Hiragana", "Katakana"}, "Kore": {"Hangul", "Han"}}.get(code[1])
        return frozenset(found or ({_CODES[code[1]]} if code[1] in _CODES else ()))
    if not re.fullmatch(r"[a-z]{2,3}", label):
        return frozenset()
    return frozenset(script for script, names in _LANGUAGES.items() if label in names.split()) or frozenset({"Latin"})


def corrected(model: FastTextModel, texts: pa.Array, found: Prediction, sample_bytes: int) -> Prediction:
    """`found` with other labels where a row has no letter of its label's scripts.

    Such a row gets the most probable label among the languages of the script that most of its letters are of, with that
    label's own probability, which is low; `found`'s label stays where the model knows no language in that script.
    """
    odd = np.flatnonzero(_unlikely(model, texts, found))
    if not len(odd):
        return found
    labels, scores = np.array(found.labels.to_pylist(), object), found.scores.copy()
    rows = texts.take(pa.array(odd))
    for script, which in _by_script(rows).items():
        allowed = np.array([script in of_label(label) for label in model.labels])
        if allowed.any():
            best = model.predict(rows.take(pa.array(which)), sample_bytes, allowed)
            labels[odd[which]], scores[odd[which]] = best.labels.to_pylist(), best.scores
    return Prediction(pa.array(labels, pa.string()), scores)


def _unlikely(model: FastTextModel, texts: pa.Array, found: Prediction) -> NDArray[np.bool_]:
    """bool[N]: rows without a letter of their label's scripts."""
    indices = pc.fill_null(pc.index_in(found.labels, pa.array(model.labels, pa.string())), -1).to_numpy()
    groups: dict[frozenset[str], list[int]] = {}
    for index in np.unique(indices[indices >= 0]).tolist():
        groups.setdefault(of_label(model.labels[index]), []).append(index)
    odd = np.zeros(len(texts), np.bool_)
    for scripts, members in groups.items():
        rows = np.flatnonzero(np.isin(indices, members))
        if scripts and len(rows):
            letter = "|".join(rf"\p{{{s}}}" for s in sorted(scripts))
            there = pc.match_substring_regex(texts.take(pa.array(rows)), letter)
            odd[rows] = ~there.to_numpy(zero_copy_only=False)
    return odd


def _by_script(texts: pa.Array) -> dict[str, NDArray[np.int64]]:
    """The rows of each script that most letters of a row are of; rows with letters of none of ours are left out."""
    names = sorted(_LANGUAGES)
    counts = np.stack([pc.count_substring_regex(texts, rf"\p{{{s}}}").to_numpy() for s in names])
    most = counts.argmax(axis=0)
    return {names[i]: np.flatnonzero((most == i) & (counts[i] > 0)) for i in np.unique(most).tolist()}
