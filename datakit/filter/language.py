"""The language stage: fastText reads the whole row, our policy is added, rows in other languages are dropped.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification; the model lid.176 knows 176 languages.

The policy: `lang` is `und` with score 0 for a row without a letter, whatever the model says of its digits, symbols or
emoji. Any other row has the model's label, and `lang_score` is the model's probability. A low score never changes the
label: it shows that a row is short or mixed, and `min_score` decides about it where languages are listed. `lang_raw` is
the model's own label for every row.

Code, names and tables take probability from a row's language and spread it over many labels: a page of English
documentation often has a score of 0.5, and no other label has 0.02. So a row below `min_score` stays if its label is
`min_ratio_to_next` times as likely as the next one.

The model is too sure about short rows: of Tatoeba's with 6 to 9 letters, the mean score is 0.56, and 0.38 of the labels
are right. The rule set `lengths` drops rows by their size.

A row in several languages has one label, and often a high score: a mean of vectors does not tell that there are two.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option, sha256_file, shares
from datakit.data import ViewOptions
from datakit.filter import fasttext_model
from datakit.stage import Decision, LossOptions, Stage

UNDETERMINED: Final = "und"
"""The code of ISO 639-3 for text without a language."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageConfig(ViewOptions, LossOptions):
    """Which model decides, and which languages stay."""

    model: str = option("lid.176", "name of a known model, or path of a fastText model", path=True)
    languages: tuple[str, ...] = option((), "keep only rows of these labels, as the model writes them; empty: keep all")
    min_score: float = option(
        0.65, "with languages listed, drop rows whose score is lower", acts_with={"languages": ()}
    )
    min_ratio_to_next: float = option(
        8.0,
        "a row below min_score stays if its label is this many times as likely as the next label; 0: none stays",
        acts_with={"languages": ()},
    )

    def __post_init__(self) -> None:
        LossOptions.__post_init__(self)
        shares(self, "min_score")
        at_least(self, 0, "min_ratio_to_next")


@dataclass(frozen=True, slots=True)
class Language(Stage):
    """Fills `lang`, `lang_score` and `lang_raw`; where languages are listed, drops the rows in others.

    Reasons: `language` (not in the list), `language_score` (in the list, but the score is below `min_score`,
    and the next label is too likely for `min_ratio_to_next`).
    """

    name: ClassVar[str] = "language"
    Config: ClassVar[type] = LanguageConfig

    config: LanguageConfig = field(default_factory=LanguageConfig)

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the model.

        Raises:
            ModelError: the model is in none of the places where it may be.
        """
        path = fasttext_model.find(self.config.model)
        return {"model": {"name": Path(self.config.model).name, "sha256": sha256_file(path)}}

    def open(self) -> None:
        """Load the model, once per process, and compile the kernels that read it.

        Raises:
            ModelError: there is no such model, or the file is not one that classifies.
            ConfigError: a listed language is none of the model's labels.
        """
        model = fasttext_model.load(self.config.model)
        known = {*model.labels, UNDETERMINED}
        model.check_labels(self.config.languages, known, f"languages: the model {self.config.model}")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Predict the language of every row, then compare it with the listed ones."""
        config, model = self.config, fasttext_model.load(self.config.model)
        texts = config.texts(batch)
        raw, probabilities = model.predict(texts)
        has_language = pc.and_(pc.match_substring_regex(texts, r"\pL"), pc.is_valid(raw))
        lang = pc.if_else(has_language, raw, UNDETERMINED)
        score = pc.if_else(has_language, pa.array(fasttext_model.rounded(probabilities)), 0.0)
        columns = {"lang": lang, "lang_score": score.cast(pa.float32()), "lang_raw": raw}
        if not config.languages:
            return Decision(reasons=pa.nulls(batch.num_rows, pa.string()), columns=columns)
        other = pc.invert(pc.is_in(lang, pa.array(config.languages, pa.string())))
        # a row without letters stays where `und` is listed, whatever `min_score` is
        unsure = pc.and_(pc.less(score, config.min_score), pc.not_equal(lang, UNDETERMINED))
        rival = np.full(batch.num_rows, np.inf)
        if config.min_ratio_to_next > 0:
            for label in {*config.languages} - {UNDETERMINED}:
                rows = np.flatnonzero(pc.and_(unsure, pc.equal(lang, label)))
                rival[rows] = fasttext_model.rounded(model.predict(texts.take(pa.array(rows)), without=label)[1])
            unsure = pc.and_(unsure, pc.less(score, pa.array(config.min_ratio_to_next * rival)))
        reasons = pc.case_when(pc.make_struct(other, unsure), "language", "language_score")
        wanted = ", ".join(config.languages)
        listed = f"not in {wanted if len(wanted) <= 60 else f'{len(config.languages)} languages'}"
        limits = pc.if_else(other, listed, f"< {config.min_score:g}")
        detail = pc.binary_join_element_wise(lang, score.cast(pa.string()), limits, " ")
        return Decision(reasons=reasons, detail=pc.if_else(pc.is_valid(reasons), detail, None), columns=columns)
