"""Every error that a user can meet, one tree:

    DatakitError                exit code 1
    ├── UsageError              exit code 2: flags or arguments that make no sense together
    ├── ConfigError             exit code 2: a recipe, flag or --set value that is unknown, wrong or senseless
    ├── InputError              a file that is missing, unreadable or not what it was said to be
    │   └── LayoutError         rows whose fields fit no known layout
    ├── ManifestError           a manifest that is missing or malformed
    │   ├── FormatVersionError  a manifest that an earlier version of datakit wrote
    │   └── IntegrityError      a checksum, a count or a parent that does not match what the manifest says
    ├── ModelError              a tokenizer, chat template or classifier that is missing or cannot be used
    ├── MissingExtraError       an optional package that this command needs
    └── AlarmError              exit code 3: a result was written that has no rows; with --strict, one with alarms or
                             quarantined records

A message is one paragraph: which file and row, what was expected, what was found, and what to do.
Programming mistakes are asserts and ordinary exceptions; they are not in this tree.
"""

import re
from pathlib import Path
from typing import Self


class DatakitError(Exception):
    """Root of the tree; `exit_code` is what the command line ends with."""

    exit_code = 1

    def of_python(self) -> Self:
        """The same error with arguments of the Python API in place of flags."""
        self.args = (in_python(str(self)), *self.args[1:])
        return self


def in_python(text: str) -> str:
    """A text about options with the names of arguments in place of flags; commands, which are in backquotes, stay."""
    return re.sub(r"`[^`]*`|--([a-z][a-z-]*[a-z])", lambda m: m[1].replace("-", "_") if m[1] else m[0], text)


class UsageError(DatakitError):
    """Flags or arguments that make no sense together."""

    exit_code = 2


class ConfigError(DatakitError):
    """A configuration value that is unknown, of the wrong type or senseless."""

    exit_code = 2


class InputError(DatakitError):
    """A file that is missing, unreadable or not what it was said to be."""


class LayoutError(InputError):
    """Rows whose fields fit no known layout. NAME in the message stands for the dataset."""

    general: "LayoutError | None" = None
    """The error before `of_dataset`."""

    def of_dataset(self, name: str, command: str = "") -> "LayoutError":
        """The same error with the name of the dataset; `command` is what the user runs instead of `datakit run`."""
        told = str(self).replace("datakit run --dataset NAME", command or "datakit run --dataset NAME")
        told = told.replace("in its recipe:", f"for every run, in manifests/{name}/recipe.toml:")
        made = LayoutError(told.replace("--dataset NAME", f"--dataset {name}"))
        made.general = self
        return made

    def of_python(self) -> Self:
        """The same error with arguments of the Python API in place of flags and recipes."""
        lines = r"  datakit run --dataset NAME .*?(  \(\w+ rows\))?\n  or in its recipe: \[ingest\] (\w+) = \{ (.*) \}"
        told = re.sub(lines, lambda m: f"  {m[2]}={{{_python(m[3])}}}{m[1] or ''}", str(self.general or self))
        told = told.replace("need --roles NAME=user, in a recipe [ingest] roles", 'need roles={"NAME": "user"}')
        return type(self)(in_python(told.replace("that --map NAME knows", 'that map="NAME" knows')))


def _python(table: str) -> str:
    """The keys and values of a table of TOML as those of a dictionary."""
    return re.sub(r'(?:^|(?<=, ))(?:"([^"]*)"|(\w+)) = ', lambda m: f'"{m[1] or m[2]}": ', table)


class ManifestError(DatakitError):
    """A manifest that is missing or malformed."""


class FormatVersionError(ManifestError):
    """A manifest that an earlier version of datakit wrote: its stage has to run again."""


class IntegrityError(ManifestError):
    """A checksum, a count or a parent that does not match what the manifest says."""


class ModelError(DatakitError):
    """A tokenizer, chat template or classifier that is missing or cannot be used."""


class MissingExtraError(DatakitError):
    """An optional package that this command needs."""


class AlarmError(DatakitError):
    """With `--strict`: a stage's result has alarms or quarantined records. It is written, as `manifest` says."""

    exit_code = 3

    def __init__(self, message: str, manifest: Path) -> None:
        super().__init__(message)
        self.manifest = manifest
