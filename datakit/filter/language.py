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

A row in several languages has one label, and often a high score: a mean of vectors does not tell that there are two.
With `segment_chars` each part of a row is read by itself, and `lang_shares` has the share of the row's letters in each
language. Parts are noisier than rows: one with a score below 0.5 counts for the label of its row.
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
from datakit.filter.lang_codes import converted
from datakit.stage import Decision, Stage

if TYPE_CHECKING:
    from datakit.filter.fasttext_model import FastTextModel, Prediction

UNDETERMINED: Final = "und"
"""The code of ISO 639-3 for text without a language."""

_SURE = 0.5
"""Parts of a row with a lower score count for the label of the row."""
_SHARES = pa.list_(pa.struct([pa.field("lang", pa.string()), pa.field("share", pa.float32())]))
_LINE_END, _SENTENCE_END = re.compile(r"\n"), re.compile(r"[.!?](?=\s)|[。！？।]")
_LAST_SPACE = re.compile(r"(?s).*\s")

_MAX_BYTES_PER_LETTER = 8
"""Rows with more bytes than this for each of `short_letters` do not count as short: counting their letters would take
longer than the model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageConfig:
    """Which model decides, and which languages stay."""

    model: str = option("lid.176", "name of a known model, or path of a fastText model", path=True)
    languages: tuple[str, ...] = option((), "keep only rows of these labels, as the model writes them; empty: keep all")
    lang_map: Literal["model", "iso639_3", "bcp47"] = option(
        "model", "what `lang` holds: the model's labels, ISO 639-3 codes (eng), or BCP 47 tags (en, zh-Hant)"
    )
    segment_chars: int = option(
        0, "read parts of about this many characters apart too, and fill `lang_shares`; 200 is usual; 0: off"
    )
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
        if self.segment_chars and self.segment_chars < 20:
            raise ConfigError(f"segment_chars = {self.segment_chars}: expected 0 (off) or at least 20 characters")
        if not 0 <= self.short_letters <= 500:
            raise ConfigError(f"short_letters = {self.short_letters}: expected 0 to 500 letters")
        if not 0 <= self.min_score <= 1:
            raise ConfigError(f"min_score = {self.min_score}: expected a score from 0 to 1")


@dataclass(frozen=True, slots=True)
class Language(Stage):
    """Fills `lang`, `lang_score` and `lang_raw`, with `segment_chars` also `lang_shares`; where languages are listed,
    drops the rows in others.

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
        known = {*model.labels, UNDETERMINED, *(converted(label, self.config.lang_map) for label in model.labels)}
        for language in self.config.languages:
            if language not in known:
                near = difflib.get_close_matches(language, sorted(known), n=3, cutoff=0.4)
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise ConfigError(f"languages: the model {self.config.model} has no label {language!r}{hint}")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Predict the language of every row, then compare it with the listed ones."""
        texts = view(batch, self.config.on, self.config.include_system)
        label, scores, raw = self._labelled(texts)
        lang = self._mapped(label)
        reasons = self._reasons(label, lang, scores)
        columns = {"lang": lang, "lang_score": pa.array(scores, pa.float32()), "lang_raw": raw}
        if self.config.segment_chars:
            columns["lang_shares"] = self._shares(texts, label)
        detail = pc.binary_join_element_wise(lang, pa.array(scores).cast(pa.string()), self._limits(reasons), " ")
        return Decision(
            reasons=reasons,
            detail=pc.if_else(pc.is_valid(reasons), detail, None),
            columns=columns,
        )

    def _labelled(self, texts: pa.Array) -> tuple[pa.Array, NDArray[np.float64], pa.Array]:
        """(labels, scores, the model's own labels) of texts."""
        model = self._model()
        raw = model.predict(texts, self.config.sample_bytes)
        has_language = pc.and_(pc.match_substring_regex(texts, r"\pL"), pc.is_valid(raw.labels))
        found = corrected(model, texts, raw, self.config.sample_bytes)
        rounded = (np.minimum(found.scores.astype(np.float64), 1.0) * self._score_factors(texts)).round(3)
        scores = np.where(has_language.to_numpy(zero_copy_only=False), rounded, 0.0)
        return pc.if_else(has_language, found.labels, UNDETERMINED), scores, raw.labels

    def _mapped(self, labels: pa.Array) -> pa.Array:
        """string[N]: the labels as `lang_map` says."""
        encoded = pc.dictionary_encode(labels)
        names = [converted(label, self.config.lang_map) for label in encoded.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(encoded.indices)

    def _shares(self, texts: pa.Array, labels: pa.Array) -> pa.Array:
        """list<struct<lang, share>>[N]: the languages of each row, the largest share of its letters first."""
        parts = [segments(text, self.config.segment_chars) for text in texts.to_pylist()]
        row = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
        flat = pa.array([part for p in parts for part in p], pa.string())
        found, scores, _ = self._labelled(flat)
        whole = labels.take(pa.array(row))
        by_part = self._mapped(pc.if_else(pa.array(scores < _SURE), whole, found))
        letters = pc.count_substring_regex(flat, r"\pL")
        table = pa.table({"row": row, "lang": by_part, "letters": letters}).group_by(["row", "lang"])
        counted: list[dict[str, int]] = [{} for _ in parts]
        for one in table.aggregate([("letters", "sum")]).to_pylist():
            if one["letters_sum"]:
                counted[one["row"]][one["lang"]] = one["letters_sum"]
        shares = [
            [
                {"lang": lang, "share": round(n / sum(langs.values()), 3)}
                for lang, n in sorted(langs.items(), key=lambda item: (-item[1], item[0]))
            ]
            for langs in counted
        ]
        return pa.array(shares, _SHARES)

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

    def _reasons(self, label: pa.Array, lang: pa.Array, scores: NDArray[np.float64]) -> pa.Array:
        """string[N]; a row without letters stays where `und` is listed, whatever `min_score` is."""
        if not self.config.languages:
            return pa.nulls(len(lang), pa.string())
        names = pa.array(self.config.languages, pa.string())
        listed = pc.or_(pc.is_in(lang, names), pc.is_in(label, names))
        unsure = pc.and_(pa.array(scores < self.config.min_score), pc.not_equal(lang, UNDETERMINED))
        low = pc.if_else(unsure, pa.scalar("language_score"), pa.scalar(None, pa.string()))
        return pc.if_else(listed, low, pa.scalar("language"))

    def _model(self) -> "FastTextModel":
        from datakit.filter import fasttext_model

        return fasttext_model.load(fasttext_model.find(self.config.model))


def segments(text: str, chars: int) -> list[str]:
    """A text in parts of `chars` / 2 to `chars` * 3 / 2 characters, the last one maybe shorter.

    They end at the first new line in that range, else at the first end of a sentence, else at the last white space.
    """
    found, begin = list[str](), 0
    while len(text) - begin > chars * 3 // 2:
        window = text[begin + chars // 2 : begin + chars * 3 // 2]
        end = _LINE_END.search(window) or _SENTENCE_END.search(window) or _LAST_SPACE.search(window)
        size = chars // 2 + end.end() if end else chars
        found.append(text[begin : begin + size])
        begin += size
    return [*found, text[begin:]]


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
