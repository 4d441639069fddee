"""The language stage: fastText reads the whole row, our policy corrects it, rows in other languages are dropped.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification; the model lid.176 knows 176 languages.

The policy: `lang` is `und` with score 0 for a row without a letter, whatever the model says of its digits, symbols or
emoji. A row without a letter in the scripts of its label's language gets the best label in its own script, with the low
score of that label. Any other row keeps the model's label. A low score never changes the label: `lang_score` shows that
a row is short or mixed, and `min_score` decides about it where languages are listed. The model is too sure about short
rows in Latin letters: for Tatoeba's rows with 6 to 9 letters its mean score is 0.56, and 0.38 of its labels are right.
Their score is multiplied with (letters / short_letters) ** 0.7. `lang_raw` is the model's own label.

A label may name its script, as GlotLID's do (`eng_Latn`, ISO 15924). For ISO 639 codes a table names the scripts; it
holds the languages of lid.176 that are not written in Latin letters, or not only in them. A label of two or three
letters that is not in the table counts as a language in Latin letters; about all other labels nothing is known.
"""

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option, sha256_file, shares
from datakit.data import view
from datakit.errors import ConfigError
from datakit.stage import Decision, Stage

if TYPE_CHECKING:
    from datakit.filter.fasttext_model import FastTextModel, Prediction

UNDETERMINED: Final = "und"
"""The code of ISO 639-3 for text without a language."""

_MAX_BYTES_PER_LETTER = 8
"""Rows with more bytes than this for each of `short_letters` do not count as short: counting their letters would take
longer than the model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageConfig:
    """Which model decides, and which languages stay."""

    model: str = option("lid.176", "name of a known model, or path of a fastText model", path=True)
    languages: tuple[str, ...] = option((), "keep only rows of these labels, as the model writes them; empty: keep all")
    min_score: float = option(0.65, "with languages listed, drop rows whose score is lower")
    short_letters: int = option(
        15, "lower the score of rows with fewer letters than this, if some are Latin; 0: keep the model's score"
    )
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a row to look at")
    include_system: bool = option(False, "look at system prompts, tool schemas and tool results too")
    sample_bytes: int = option(
        0, "read only this many bytes of longer rows, from the beginning, the middle and the end; 0: read all"
    )
    max_loss: float = option(0.5, "raise an alarm where all rows, or those of a source, lose more than this share")

    def __post_init__(self) -> None:
        shares(self, "max_loss")
        if self.sample_bytes < 0:
            raise ConfigError(f"sample_bytes = {self.sample_bytes}: expected 0 (no limit) or more")
        if not 0 <= self.short_letters <= 500:
            raise ConfigError(f"short_letters = {self.short_letters}: expected 0 to 500 letters")
        if not 0 <= self.min_score <= 1:
            raise ConfigError(f"min_score = {self.min_score}: expected a score from 0 to 1")


@dataclass(frozen=True, slots=True)
class Language(Stage):
    """Fills `lang`, `lang_score` and `lang_raw`; where languages are listed, drops the rows in others.

    Reasons: `language` (not in the list), `language_score` (in the list, but the score is below `min_score`).
    """

    name: ClassVar[str] = "language"
    Config: ClassVar[type] = LanguageConfig

    config: LanguageConfig = field(default_factory=LanguageConfig)

    @property
    def max_loss(self) -> float:
        """As configured."""
        return self.config.max_loss

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the model.

        Raises:
            ModelError: the model is in none of the places where it may be.
        """
        from datakit.filter import fasttext_model

        path = fasttext_model.find(self.config.model)
        return {"model": {"name": Path(self.config.model).name, "sha256": sha256_file(path)}}

    def open(self) -> None:
        """Load the model, once per process, and compile the kernels that read it.

        Raises:
            ModelError: there is no such model, or the file is not one that classifies.
            ConfigError: a listed language is none of the model's labels.
        """
        model = self._model()
        model.predict(pa.array(["a"]))
        known = {*model.labels, UNDETERMINED}
        for language in self.config.languages:
            if language not in known:
                near = difflib.get_close_matches(language, sorted(known), n=3, cutoff=0.4)
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise ConfigError(f"languages: the model {self.config.model} has no label {language!r}{hint}")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Predict the language of every row, then compare it with the listed ones."""
        texts = view(batch, self.config.on, self.config.include_system)
        model = self._model()
        raw = model.predict(texts, self.config.sample_bytes)
        has_language = pc.and_(pc.match_substring_regex(texts, r"\pL"), pc.is_valid(raw.labels))
        found = corrected(model, texts, raw, self.config.sample_bytes)
        lang = pc.if_else(has_language, found.labels, UNDETERMINED)
        rounded = (np.minimum(found.scores.astype(np.float64), 1.0) * self._score_factors(texts)).round(3)
        scores = np.where(has_language.to_numpy(zero_copy_only=False), rounded, 0.0)
        reasons = self._reasons(lang, scores)
        detail = pc.binary_join_element_wise(lang, pa.array(scores).cast(pa.string()), self._limits(reasons), " ")
        return Decision(
            reasons=reasons,
            detail=pc.if_else(pc.is_valid(reasons), detail, None),
            columns={"lang": lang, "lang_score": pa.array(scores, pa.float32()), "lang_raw": raw.labels},
        )

    def _limits(self, reasons: pa.Array) -> pa.Array:
        """string[N]: what the value behind a reason was compared with."""
        names = ", ".join(self.config.languages)
        wanted = names if len(names) <= 60 else f"{len(self.config.languages)} languages"
        return pc.if_else(pc.equal(reasons, "language"), f"not in {wanted}", f"< {self.config.min_score:g}")

    def _score_factors(self, texts: pa.Array) -> NDArray[np.float64]:
        """float64[N], 0..1: what scores are multiplied with; less than 1 for short rows in Latin letters."""
        factors, limit = np.ones(len(texts)), self.config.short_letters
        rows = np.flatnonzero(pc.binary_length(texts).to_numpy() <= _MAX_BYTES_PER_LETTER * limit)
        if len(rows):
            short = texts.take(pa.array(rows))
            latin = pc.match_substring_regex(short, r"\p{Latin}").to_numpy(zero_copy_only=False)
            letters = np.minimum(pc.count_substring_regex(short, r"\pL").to_numpy(), limit)
            factors[rows] = np.where(latin, (letters / max(limit, 1)) ** 0.7, 1.0)
        return factors

    def _reasons(self, lang: pa.Array, scores: NDArray[np.float64]) -> pa.Array:
        """string[N]; a row without letters stays where `und` is listed, whatever `min_score` is."""
        if not self.config.languages:
            return pa.nulls(len(lang), pa.string())
        listed = pc.is_in(lang, pa.array(self.config.languages, pa.string()))
        unsure = pc.and_(pa.array(scores < self.config.min_score), pc.not_equal(lang, UNDETERMINED))
        low = pc.if_else(unsure, pa.scalar("language_score"), pa.scalar(None, pa.string()))
        return pc.if_else(listed, low, pa.scalar("language"))

    def _model(self) -> "FastTextModel":
        from datakit.filter import fasttext_model

        return fasttext_model.load(fasttext_model.find(self.config.model))


def corrected(model: "FastTextModel", texts: pa.Array, found: "Prediction", sample_bytes: int) -> "Prediction":
    """`found` with other labels for rows that have no letter in the scripts of their label.

    Such a row gets the most probable label among the languages of the script that most of its letters are in, with the
    low probability of that label. It keeps its label where the model knows no language in that script.
    """
    from datakit.filter.fasttext_model import Prediction

    wrong = np.flatnonzero(_wrong_script(model, texts, found))
    if not len(wrong):
        return found
    labels, scores = np.array(found.labels.to_pylist(), object), found.scores.copy()
    rows = texts.take(pa.array(wrong))
    for script, which in _by_script(rows).items():
        allowed = np.array([script in scripts_of(label) for label in model.labels])
        if allowed.any():
            best = model.predict(rows.take(pa.array(which)), sample_bytes, allowed)
            labels[wrong[which]], scores[wrong[which]] = best.labels.to_pylist(), best.scores
    return Prediction(pa.array(labels, pa.string()), scores)


def _wrong_script(model: "FastTextModel", texts: pa.Array, found: "Prediction") -> NDArray[np.bool_]:
    """bool[N]: rows without a letter in the scripts of their label."""
    indices = pc.fill_null(pc.index_in(found.labels, pa.array(model.labels, pa.string())), -1).to_numpy()
    groups: dict[frozenset[str], list[int]] = {}
    for index in np.unique(indices[indices >= 0]).tolist():
        groups.setdefault(scripts_of(model.labels[index]), []).append(index)
    wrong = np.zeros(len(texts), np.bool_)
    for scripts, members in groups.items():
        rows = np.flatnonzero(np.isin(indices, members))
        if scripts and len(rows):
            letter = "|".join(rf"\p{{{s}}}" for s in sorted(scripts))
            has_letter = pc.match_substring_regex(texts.take(pa.array(rows)), letter)
            wrong[rows] = ~has_letter.to_numpy(zero_copy_only=False)
    return wrong


def _by_script(texts: pa.Array) -> dict[str, NDArray[np.int64]]:
    """The rows of each script: that of most letters of a row. Rows without a letter in one of ours are left out."""
    names = sorted(_LANGUAGES)
    counts = np.stack([pc.count_substring_regex(texts, rf"\p{{{s}}}").to_numpy() for s in names])
    most = counts.argmax(axis=0)
    return {names[i]: np.flatnonzero((most == i) & (counts[i] > 0)) for i in np.unique(most).tolist()}


def scripts_of(label: str) -> frozenset[str]:
    """The scripts of a label's language; empty where they are unknown."""
    code = re.fullmatch(r"[a-z]{2,3}_([A-Z][a-z]{3})(_.*)?", label)
    if code:
        found = {"Jpan": {"Han", "Hiragana", "Katakana"}, "Kore": {"Hangul", "Han"}}.get(code[1])
        return frozenset(found or ({_SCRIPT_CODES[code[1]]} if code[1] in _SCRIPT_CODES else ()))
    if not re.fullmatch(r"[a-z]{2,3}", label):
        return frozenset()
    return frozenset(script for script, names in _LANGUAGES.items() if label in names.split()) or frozenset({"Latin"})


_SCRIPT_CODES: Final = {
    "Arab": "Arabic", "Armn": "Armenian", "Beng": "Bengali", "Cyrl": "Cyrillic", "Deva": "Devanagari",
    "Ethi": "Ethiopic", "Geor": "Georgian", "Grek": "Greek", "Gujr": "Gujarati", "Guru": "Gurmukhi",
    "Hang": "Hangul", "Hani": "Han", "Hans": "Han", "Hant": "Han", "Hebr": "Hebrew", "Khmr": "Khmer",
    "Knda": "Kannada", "Laoo": "Lao", "Latn": "Latin", "Mlym": "Malayalam", "Mymr": "Myanmar", "Orya": "Oriya",
    "Sinh": "Sinhala", "Taml": "Tamil", "Telu": "Telugu", "Thaa": "Thaana", "Thai": "Thai", "Tibt": "Tibetan",
}  # fmt: skip
"""ISO 15924 codes of labels, and the names of these scripts in regular expressions."""

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
"""By script, the languages that are written in it today; some languages have several scripts."""
