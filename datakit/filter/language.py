"""The language stage: fastText reads the whole row, our policy is added, rows in other languages are dropped.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification; the model lid.176 knows 176 languages.

The policy: `lang` is `und` with score 0 for a row without a letter, whatever the model says of its digits, symbols or
emoji. Any other row has the model's label, and `lang_score` is the model's probability. A low score never changes the
label: it shows that a row is short or mixed, and `min_score` decides about it where languages are listed. `lang_raw` is
the model's own label for every row. The model is too sure about short rows: of Tatoeba's with 6 to 9 letters, the mean
score is 0.56, and 0.38 of the labels are right. The rule set `lengths` drops rows by their size.

A row in several languages has one label, and often a high score: a mean of vectors does not tell that there are two.
With `segment_chars` each part of a row is read by itself, and `lang_shares` has the share of the row's letters in each
language. Parts are noisier than rows: one with a score below 0.5 counts for the label of its row.
"""

import functools
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import at_least, option, sha256_file, shares
from datakit.data import view
from datakit.errors import ConfigError
from datakit.stage import Decision, Stage

if TYPE_CHECKING:
    from datakit.filter.fasttext_model import FastTextModel

Code = Literal["model", "iso639_3", "bcp47"]

UNDETERMINED: Final = "und"
"""The code of ISO 639-3 for text without a language."""

_SURE = 0.5
"""Parts of a row with a lower score count for the label of the row."""
_SHARES = pa.list_(pa.struct([pa.field("lang", pa.string()), pa.field("share", pa.float32())]))
_LINE_END, _SENTENCE_END = re.compile(r"\n"), re.compile(r"[.!?](?=\s)|[。！？।]")
_LAST_SPACE = re.compile(r"(?s).*\s")


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageConfig:
    """Which model decides, and which languages stay."""

    model: str = option("lid.176", "name of a known model, or path of a fastText model", path=True)
    languages: tuple[str, ...] = option((), "keep only rows of these labels, as the model writes them; empty: keep all")
    lang_map: Code = option("model", "what `lang` holds: the model's labels, ISO 639-3 (eng), or BCP 47 (en, zh-Hant)")
    segment_chars: int = option(0, "also read parts of about so many characters; 200 is usual; 0: off", advanced=True)
    min_score: float = option(0.65, "with languages listed, drop rows whose score is lower")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a row to look at")
    include_system: bool = option(False, "look at system prompts, tool schemas and tool results too", advanced=True)
    sample_bytes: int = option(0, "bytes of a longer row that are read: beginning, middle, end; 0: all", advanced=True)
    max_loss: float = option(0.5, "alarm where all rows, or those of a source, lose more than this", advanced=True)

    def __post_init__(self) -> None:
        shares(self, "max_loss", "min_score")
        at_least(self, 0, "sample_bytes")
        if self.segment_chars and self.segment_chars < 20:
            raise ConfigError(f"segment_chars = {self.segment_chars}: expected 0 (off) or at least 20 characters")


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
        model, code = self._model(), self.config.lang_map
        known = {*model.labels, UNDETERMINED, *(converted(label, code) for label in model.labels)}
        model.check_labels(self.config.languages, known, f"languages: the model {self.config.model}")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Predict the language of every row, then compare it with the listed ones."""
        config, texts = self.config, view(batch, self.config.on, self.config.include_system)
        label, scores, raw = self._labelled(texts)
        lang, score = self._mapped(label), pa.array(scores)
        columns = {"lang": lang, "lang_score": score.cast(pa.float32()), "lang_raw": raw}
        if config.segment_chars:
            columns["lang_shares"] = self._shares(texts, label)
        if not config.languages:
            return Decision(reasons=pa.nulls(batch.num_rows, pa.string()), columns=columns)
        names = pa.array(config.languages, pa.string())
        other = pc.invert(pc.or_(pc.is_in(lang, names), pc.is_in(label, names)))
        # a row without letters stays where `und` is listed, whatever `min_score` is
        unsure = pc.and_(pc.less(score, config.min_score), pc.not_equal(lang, UNDETERMINED))
        reasons = pc.case_when(pc.make_struct(other, unsure), "language", "language_score")
        wanted = ", ".join(config.languages)
        listed = f"not in {wanted if len(wanted) <= 60 else f'{len(config.languages)} languages'}"
        limits = pc.if_else(other, listed, f"< {config.min_score:g}")
        detail = pc.binary_join_element_wise(lang, score.cast(pa.string()), limits, " ")
        return Decision(reasons=reasons, detail=pc.if_else(pc.is_valid(reasons), detail, None), columns=columns)

    def _labelled(self, texts: pa.Array) -> tuple[pa.Array, NDArray[np.float64], pa.Array]:
        """(labels, scores, the model's own labels) of texts."""
        from datakit.filter.fasttext_model import rounded

        raw = self._model().predict(texts, self.config.sample_bytes)
        has_language = pc.and_(pc.match_substring_regex(texts, r"\pL"), pc.is_valid(raw.labels))
        scores = np.where(has_language.to_numpy(zero_copy_only=False), rounded(raw.scores), 0.0)
        return pc.if_else(has_language, raw.labels, UNDETERMINED), scores, raw.labels

    def _mapped(self, labels: pa.Array) -> pa.Array:
        """string[N]: the labels as `lang_map` says."""
        encoded = pc.dictionary_encode(labels)
        names = [converted(label, self.config.lang_map) for label in encoded.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(encoded.indices)

    def _shares(self, texts: pa.Array, labels: pa.Array) -> pa.Array:
        """list<struct<lang, share>>[N]: the languages of each row, the largest share of its letters first."""
        parts = pa.array(
            [segments(text, self.config.segment_chars) for text in texts.to_pylist()], pa.list_(pa.string())
        )
        row, flat = pc.list_parent_indices(parts), parts.flatten()
        found, scores, _ = self._labelled(flat)
        by_part = self._mapped(pc.if_else(pa.array(scores < _SURE), labels.take(row), found))
        counted: list[Counter[str]] = [Counter() for _ in texts]
        letters = pc.count_substring_regex(flat, r"\pL")
        for i, lang, n in zip(row.to_pylist(), by_part.to_pylist(), letters.to_pylist(), strict=True):
            counted[i][lang] += n
        shares = [
            [{"lang": lang, "share": round(n / langs.total(), 3)} for lang, n in sorted(langs.items(), key=_most) if n]
            for langs in counted
        ]
        return pa.array(shares, _SHARES)

    def _model(self) -> "FastTextModel":
        from datakit.filter import fasttext_model

        return fasttext_model.load(fasttext_model.find(self.config.model))


def _most(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


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


# Codes of languages, so that rows of different models can be compared.

_WIKIPEDIA: Final = {"als": "gsw", "bh": "bho", "eml": "egl", "sh": "hbs"}
"""lid.176 writes the codes of Wikipedias. These mean another language in ISO 639-3, or none there (`als` is Tosk
Albanian). `nah`, a group of languages, has no code and stays."""


@functools.cache
def converted(label: str, code: Code) -> str:
    """A model's label (`en`, or as GlotLID's `eng_Latn`) as that code; what is no code of a language stays as it is.

    The tables are those of the package langcodes: the registry of IANA and the CLDR. A macrolanguage stays one: `zh` is
    `zho`, while GlotLID's `cmn_Hani` is `cmn`.
    """
    if code == "model" or not re.fullmatch(r"[a-z]{2,3}(_[A-Z][a-z]{3}(_\w+)?)?", label):
        return label
    from langcodes import Language as Tag

    language, _, script = label.partition("_")
    language = _WIKIPEDIA.get(language, language) if not script else language
    try:
        if code == "iso639_3":
            return str(Tag.get(language, normalize=False).to_alpha3())
        tag = f"{language}-{script[:4]}" if script[:4] not in ("", "Zzzz") else language
        return str(Tag.get(tag).simplify_script().to_tag())
    except LookupError:  # no such language in the tables
        return label
