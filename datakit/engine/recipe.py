"""Which stages there are, and recipes: what a dataset is made from, by which stages, with which values.

The registry (`STAGES`) has one line for each stage. A new stage is one file and one line here; its command, recipe
section and flags follow. It holds import paths, so that `datakit --help` loads no stage. A recipe is
`manifests/<dataset>/recipe.toml`.
"""

import difflib
import importlib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from datakit.config import Option, UnknownKeyError, assign, build, check, instead_of, options
from datakit.errors import ConfigError, UsageError
from datakit.storage import pull_result, write_whole

if TYPE_CHECKING:
    from datakit.stage import Stage

# The registry.


@dataclass(frozen=True, slots=True)
class Entry:
    """A stage: where its class is, its line in `datakit --help`, and whether recipes have it without naming it."""

    path: str
    summary: str
    default: bool = True


STAGES: dict[str, Entry] = {
    "ingest": Entry("datakit.read.stage:Ingest", "Read raw files into rows; quarantine what cannot be read."),
    "map": Entry("datakit.filter.own_map:Map", "Change rows by a function of yours.", False),
    "normalize": Entry("datakit.filter.normalize:Normalize", "Repair encodings, characters and white space.", False),
    "language": Entry("datakit.filter.language:Language", "Label each row's language; keep the languages you list."),
    "dedup_urls": Entry("datakit.dedup.urls:DedupUrls", "Drop rows with the URL of an earlier row.", False),
    "dedup": Entry("datakit.dedup.stage:Dedup", "Drop exact and verified near duplicates."),
    "dedup_repeats": Entry("datakit.dedup.repeats:DedupRepeats", "Cut passages that occur again.", False),
    "dedup_semantic": Entry(
        "datakit.dedup.semantic:DedupSemantic", "Drop rows that say in other words what an earlier row says.", False
    ),
    "filter": Entry("datakit.filter.stage:Filter", "Drop rows that fail the quality rules."),
    "classifier": Entry("datakit.filter.classifier:TrainClassifier", "Train a classifier for `classify`.", False),
    "classify": Entry("datakit.filter.classifier:Classify", "Keep the rows that a classifier scores best.", False),
    "perplexity_model": Entry(
        "datakit.filter.perplexity:TrainNgramModel", "Train an n-gram model for `perplexity`.", False
    ),
    "perplexity": Entry(
        "datakit.filter.perplexity:Perplexity", "Keep the rows that a language model knows best.", False
    ),
    "tokenizer": Entry("datakit.pack.train_tokenizer:TrainTokenizer", "Train a tokenizer on the dataset.", False),
    "tokenize": Entry("datakit.pack.tokenize:Tokenize", "Turn rows into token ids and label spans."),
    "pack": Entry("datakit.pack.stage:Pack", "Fit token sequences into rows and write the trainer's format."),
}
"""In the order that data usually flows."""

FLOW: list[str] = [*STAGES]
"""The stages that a recipe can have, in order; those of the user's own are entered, too."""

OWN = "datakit.stages"
"""The entry points of installed packages that offer stages."""


def registered(name: str) -> str:
    """What manifests call a stage that a recipe names; one of the user's own is entered into the registry.

    Raises:
        ConfigError: the name means no stage, or one that has the name of another.
    """
    if name in STAGES:
        return name
    import datakit.own_code as own_code  # here, since `--help` needs none
    from datakit.stage import Stage

    if not own_code.is_own(name, OWN):
        return name
    found = own_code.find(name, OWN)
    if not (isinstance(found, type) and issubclass(found, Stage)):
        raise ConfigError(f"{name}: expected a subclass of datakit.stage.Stage; found {found!r}")
    for hook in vars(found):
        if instead := instead_of("Stage", hook):
            raise ConfigError(f"{name}: Stage.{hook} was removed. {instead}")
    if found.name in STAGES and STAGES[found.name].path.startswith("datakit."):
        raise ConfigError(f"{name}: its stage is called {found.name!r}, as one of datakit's is: rename it")
    STAGES[found.name] = Entry(name, (found.__doc__ or name).strip().splitlines()[0], False)
    if found.name not in FLOW:
        FLOW.insert(FLOW.index("tokenizer"), found.name)
    return found.name


def stage_class(name: str) -> "type[Stage]":
    """The class of a stage, imported when it is asked for.

    Of a stage that only a manifest names (the user's own, which this command did not need) it is the base class.
    """
    if name not in STAGES:
        from datakit.stage import Stage

        return Stage
    path = STAGES[name].path
    if not path.startswith("datakit."):
        from datakit.own_code import find

        return cast("type[Stage]", find(path, OWN))
    module, attribute = path.split(":")
    found: type[Stage] = getattr(importlib.import_module(module), attribute)
    return found


# Recipes.

KINDS = ("auto", "text", "sft", "preference")


def check_name(dataset: str) -> str:
    """A dataset's name, if it can be the name of a folder everywhere.

    Raises:
        UsageError: it is empty, has slashes, begins with a dot, or is one that we use ourselves.
    """
    if not re.fullmatch(r"\w[\w .+-]*", dataset) or dataset == "history":
        raise UsageError(f"{dataset!r} is no name for a dataset: use letters, digits, '-', '_', '.', '+'")
    return dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What was asked for. A dataset without a recipe file has the defaults of this class."""

    dataset: str
    inputs: tuple[str, ...] = ()
    """Files, folders and globs, relative to the project."""
    kind: str = "auto"
    stages: tuple[str, ...] = tuple(s for s in FLOW if STAGES[s].default)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The sections of the stages, as they were written."""
    path: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(registered(name) for name in self.stages))
        where, stages = self.path or self.dataset, list(self.stages)
        check_name(self.dataset)
        for unknown in (s for s in (*stages, *self.tables) if s not in FLOW):
            if instead := instead_of(unknown):
                raise ConfigError(f"{where}: the stage {unknown!r} was removed. {instead}")
            raise ConfigError(f"{where}: unknown stage {unknown!r}; stages are {', '.join(FLOW)}")
        check(self.kind, Literal[KINDS], f"{where}: dataset.kind")
        last = [s for s in ("tokenize", "pack") if s in stages]  # nothing but pack comes after tokenize
        right = stages[:1] == ["ingest"] and len({*stages}) == len(stages) and stages[len(stages) - len(last) :] == last
        if not right or last == ["pack"]:
            rule = "each once, ingest first, tokenize and then pack last, a tokenizer before tokenize"
            raise ConfigError(f"{where}: stages {stages}: {rule}")

    def config(self, stage: str, sets: dict[str, str] | None = None, flags: dict[str, Any] | None = None) -> Any:
        """The config of a stage: its defaults, the recipe's section, then flags, then `--set` values.

        Raises:
            ConfigError: an unknown key, or a value that is of the wrong type or senseless.
        """
        own, values = self.tables.get(stage, {}), self.changed({stage: sets or {}}, {stage: flags or {}}).tables[stage]
        # what the recipe says was checked when it was loaded: values of a command are not its fault
        where = f"{self.path} [{stage}]" if self.path and values == own else stage
        if stage == "ingest":
            values = {"kind": self.kind} | values
        try:
            return build(stage_class(stage).Config, values, where)
        except UnknownKeyError as e:
            raise _about(stage, e) from None

    def changed(self, sets: dict[str, dict[str, str]], flags: dict[str, dict[str, Any]] | None = None) -> "Recipe":
        """The recipe with the values of flags, then `--set` values, in its sections."""
        tables: dict[str, dict[str, Any]] = json.loads(json.dumps(self.tables))
        for stage, given in (flags or {}).items():
            tables[stage] = tables.get(stage, {}) | given
        for stage, key, text in ((stage, *item) for stage, values in sets.items() for item in values.items()):
            try:
                assign(tables.setdefault(stage, {}), stage_class(stage).Config, key, text, f"--set {stage}.{key}")
            except UnknownKeyError as e:
                raise _about(stage, e) from None
        return replace(self, tables=tables)

    def before(self, stage: str) -> tuple[str, ...]:
        """The recipe's stages before one, in order."""
        if stage in self.stages:
            return self.stages[: self.stages.index(stage)]
        return tuple(s for s in self.stages if FLOW.index(s) < FLOW.index(stage))


def _about(stage: str, error: UnknownKeyError) -> ConfigError:
    """An error about an unknown key that says what replaced a removed option, or which sections have such a key."""
    if instead := instead_of(stage, error.path):
        return ConfigError(f"{error.where}: the option {error.key!r} was removed. {instead}")
    places = [
        f"[{place}]" for s in FLOW for place in _sections_with(error.key.replace("-", "_"), s, stage_class(s).Config)
    ]
    if places:
        return ConfigError(f"{error.where}: unknown key {error.key!r}; it belongs to {' or '.join(places)}")
    return error


def _sections_with(key: str, name: str, config: type) -> Iterator[str]:
    """Those sections that have a key, of the section `name` and the ones in it."""
    for o in options(config):
        if o.name == key:
            yield name
        if o.nested:
            yield from _sections_with(key, f"{name}.{o.name}", o.nested)


def recipe_path(root: Path, dataset: str) -> Path:
    """Where a dataset's recipe lies."""
    return root / "manifests" / dataset / "recipe.toml"


def load_recipe(root: Path, dataset: str) -> Recipe:
    """The recipe of a dataset; the defaults where the dataset has none.

    Raises:
        ConfigError: not TOML, an unknown section or a wrong value.
    """
    path = recipe_path(root, dataset)
    if not path.is_file():
        return Recipe(dataset=dataset)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: is not TOML: {e}") from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name}: expected a section [{name}] with keys, found {table!r}")
    head = tables.pop("dataset", {})
    unknown = sorted(head.keys() - {"inputs", "kind", "stages"})
    if unknown:
        raise ConfigError(f"{path}: [dataset] has an unknown key {unknown[0]!r}; known keys are inputs, kind, stages")
    lists = {k: check(head[k], tuple[str, ...], f"{path}: dataset.{k}") for k in ("inputs", "stages") if k in head}
    tables = {name: table for name, table in tables.items() if table}  # a fresh recipe has empty ones
    recipe = Recipe(dataset=dataset, path=path, tables=tables, kind=head.get("kind", "auto"), **lists)
    for stage in recipe.tables:
        recipe.config(stage)  # every value is checked before any work
    return recipe


def datasets(root: Path) -> list[str]:
    """The datasets of a project: the folders of `manifests/` with a recipe or a manifest."""
    folder = root / "manifests"
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and any(p.glob("*.*"))) if folder.is_dir() else []


def which_dataset(root: Path, named: str | None) -> str:
    """The dataset that is named; where none is, the only one, or the only one beside the demo's.

    Raises:
        UsageError: there is none of that name; none is named, and there is none or more than one.
    """
    found = datasets(root)
    if named is not None and check_name(named) not in found:
        near = difflib.get_close_matches(named, found, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else f" It holds {', '.join(found)}." if found else ""
        raise UsageError(f"manifests/ holds no dataset {named!r}.{meant} `datakit init {named} FILES...` begins it")
    if named is not None:
        return named
    own = [d for d in found if d != "demo"] or found
    if len(own) != 1:
        raise UsageError(
            f"no dataset named, and manifests/ holds {len(own)}{': ' + ', '.join(own) if own else ''}. Name one with "
            "--dataset, give input files, or begin one with `datakit init NAME FILES...`"
        )
    return own[0]


def result_path(given: str | os.PathLike[str], root: Path = Path()) -> Path:
    """A manifest's path: from its own, from the folder that holds it, or from the name of a dataset: its last one."""
    path, of_dataset = pull_result(given), root / "manifests" / Path(given)
    if path.exists() or not of_dataset.is_dir():
        return path
    return next((f for s in reversed(FLOW) if (f := of_dataset / f"{s}.json").is_file()), path)


MOST_LINES = 60
"""Of a fresh recipe, unless it has many stages."""


def template(
    dataset: str, kind: str, inputs: list[str], stages: tuple[str, ...], values: dict[str, dict[str, Any]]
) -> str:
    """A fresh recipe: a section for each stage that runs, with `values`, then its first options and their defaults.

    An option is one line, ready to be uncommented, with its help behind it. There are as many of each stage as fit.
    """
    import tomlkit  # here, since `--help` needs none

    def line(option: Option) -> str:
        choice = f" ({' | '.join(map(str, option.choices))})" if option.choices else ""
        default = tomlkit.item("" if option.default is None else option.default).as_string().strip()
        return f"{option.name} = {default or '{}'}  # {option.help}{choice}"

    recipe = tomlkit.document()
    recipe.add(tomlkit.comment(f"What {dataset} is made from. `datakit run --dataset {dataset}` makes it."))
    recipe.add(
        tomlkit.comment("Commented options have their defaults. `datakit STAGE --help-all` lists the others of a")
    )
    recipe.add(tomlkit.comment("stage, and docs/recipes.md the other stages: their names go into `stages`."))
    recipe.add("dataset", tomlkit.item({"kind": kind, "inputs": inputs, "stages": list(stages)}))
    shown = {stage: [o for o in _usual(stage) if o.name not in values.get(stage, {})] for stage in stages}
    room = MOST_LINES - 8 - 2 * len(stages) - sum(len(given) for given in values.values())
    each = max((n for n in range(1, 16) if sum(len(found[:n]) for found in shown.values()) <= room), default=1)
    for stage, found in shown.items():
        section = tomlkit.table()
        for name, value in values.get(stage, {}).items():
            section.add(name, value)
            if isinstance(value, dict):  # in a table of its own, it would own the lines below
                section[name] = tomlkit.inline_table()
                section[name].update(value)
        for option in found[:each]:
            section.add(tomlkit.comment(line(option)))
        recipe.add(stage, section)
    return tomlkit.dumps(recipe).replace("\n[", "\n\n[").replace("\n\n\n", "\n\n")


def _usual(stage: str) -> list[Option]:
    """The options of a stage that a fresh recipe may show."""
    return [
        o
        for o in options(stage_class(stage).Config)
        if not o.nested and not o.advanced and (stage, o.name) != ("ingest", "kind")  # it stands in [dataset]
    ]


def write_recipe(
    root: Path,
    dataset: str,
    kind: str,
    inputs: list[str],
    stages: tuple[str, ...],
    values: dict[str, dict[str, Any]] | None = None,
) -> Path:
    """Write a fresh recipe; `values` by stage are those that are not the defaults.

    Raises:
        UsageError: the dataset has one.
    """
    path = recipe_path(root, check_name(dataset))
    if path.exists():
        raise UsageError(f"{path}: exists; edit it, or choose another name")
    write_whole(path, template(dataset, kind, inputs, stages, values or {}).encode())
    return path
