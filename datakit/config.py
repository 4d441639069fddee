"""Configuration: frozen dataclasses that a recipe's TOML, command-line flags and `--set` fill from the same fields.

A config class declares its fields with `option(default, help)`; checks live in its `__post_init__`.
Standard library only.
"""

import dataclasses
import difflib
import hashlib
import json
import math
import re
import tomllib
import types
import typing
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

from datakit.errors import ConfigError

T = TypeVar("T")
PRESET = "preset"
"""The key under which a table of a recipe, or a flag, that is one word has that word: `--map squad`."""


OF_TURNS = MappingProxyType({"kind": ("conversation", "preference")})
OF_DOCUMENTS = MappingProxyType({"kind": ("document",)})
"""For `acts_with`: what acts on rows with turns, or without."""


def option(
    default: Any,
    help: str,
    *,
    path: bool = False,
    result: bool = True,
    flag: str = "",
    advanced: bool = False,
    acts_with: Mapping[str, tuple[Any, ...]] = MappingProxyType({}),
) -> Any:
    """A dataclass field with a default and the sentence that `--help` and a fresh recipe show for it.

    `path` marks the place of a file whose content is known by its hash: only its name enters manifests and keys.
    `flag` gives a list in a nested section a command-line flag of its own, as `--eval`.
    With `result` false the value shapes time and memory alone, never the result, and enters neither.
    With `advanced` only `--help-all` shows it, and a fresh recipe leaves it out.
    `acts_with` has the other options of the config without which it does nothing, with the values that they must have
    (none: any that is not the default), and as "kind" the kinds of rows; one of them is enough. Where none is there,
    another value than the default is refused.
    """
    metadata = {
        "help": help, "path": path, "result": result, "flag": flag, "advanced": advanced, "acts_with": acts_with
    }  # fmt: skip
    if default == {}:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def section(config: type, help: str = "", *, optional: bool = False) -> Any:
    """A nested config dataclass, a table of its own in the recipe; `help` is one sentence.

    The default is made once: config classes are frozen, so all that have it can share it. An `optional` section is
    None where it is not used, and is in no manifest then.
    """
    return field(default=None if optional else config(), metadata={"help": help, "optional": optional})


@dataclass(frozen=True, slots=True)
class Option:
    """One field of a config class as recipes and flags see it."""

    name: str
    type: Any
    default: Any
    help: str = ""
    flag: str = ""
    advanced: bool = False
    acts_with: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    choices: tuple[str, ...] = ()
    """The values of a `Literal`; empty for any other type."""
    nested: type | None = None
    """The config class of a nested section, or None."""


def options(config: type) -> list[Option]:
    """The fields of a config class, in the order they were written: its own, then those that it inherits."""
    hints, own = typing.get_type_hints(config), vars(config).get("__annotations__", {})
    found = []
    for f in sorted(dataclasses.fields(config), key=lambda f: f.name not in own):
        made = f.default_factory() if f.default_factory is not MISSING else None
        default = made if f.default is MISSING else f.default
        shown = {key: f.metadata[key] for key in ("help", "flag", "advanced", "acts_with") if key in f.metadata}
        kind = hints[f.name]
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        # an optional section is `Config | None`
        nested = next((k for k in (kind, *get_args(kind)) if isinstance(k, type) and dataclasses.is_dataclass(k)), None)
        found.append(Option(f.name, kind, default, choices=choices, nested=nested, **shown))
    return found


def build(config: type[T], values: dict[str, Any], where: str, section: str = "") -> T:
    """Make a `config` from a plain mapping, with every value's type checked; `where` names its origin in errors.

    `section` is its place in the config of a stage, as `gopher_quality.`.

    Raises:
        ConfigError: an unknown key, a value of the wrong type, or a value that `__post_init__` refuses.
    """
    known = {o.name: o for o in options(config)}
    built = {}
    for key, value in values.items():
        o = _known(known, key, where, section)
        here = f"{where}.{o.name}"
        if o.nested:
            built[o.name] = build(o.nested, check(value, dict[str, Any], here), here, f"{section}{o.name}.")
        else:
            built[o.name] = check(value, o.type, here)
    try:
        made = config(**built)
        refuse_idle(made)
    except ConfigError as e:
        raise ConfigError(f"{where}: {e}") from None
    return made


def refuse_idle(config: Any, kind: str = "", section: str = "") -> None:
    """Refuse an option that was set and does nothing: beside the other options, or for rows of a kind if it is given.

    Raises:
        ConfigError: there is one; the text says with what it would act.
    """
    fields = {o.name: (o, getattr(config, o.name)) for o in options(type(config))}

    def acts(name: str, values: tuple[Any, ...]) -> bool:
        if name == "kind":
            return not kind or kind in values
        other, value = fields[name]
        return value in values if values else value != other.default

    for o, value in fields.values():
        if o.nested and value is not None:
            refuse_idle(value, kind, f"{section}{o.name}.")
        elif o.acts_with and value != o.default and not any(acts(*needed) for needed in o.acts_with.items()):
            needed = [_wanted(*needed) for needed in o.acts_with.items()]
            found = f" These rows are of the kind {kind}." if kind and "kind" in o.acts_with else ""
            said = f"{section}{o.name} = {value!r} would do nothing: it acts only with {', or '.join(needed)}."
            raise ConfigError(f"{said}{found} Leave it out")


def _wanted(name: str, values: tuple[Any, ...]) -> str:
    """What an option acts with, in words."""
    these = " or ".join(map(str, values))
    return f"rows of the kind {these}" if name == "kind" else f"{name} = {these or '...'}"


class UnknownKeyError(ConfigError):
    """A key that a config does not have: `key`, found `where`; `path` is the key behind its sections, with dots."""

    def __init__(self, where: str, key: str, path: str, help: str) -> None:
        super().__init__(f"{where}: unknown key {key!r}; {help}")
        self.where, self.key, self.path = where, key, path


def _known(known: dict[str, Option], key: str, where: str, section: str) -> Option:
    """The option that a key means, also with dashes.

    Raises:
        UnknownKeyError: there is none.
    """
    if found := known.get(key.replace("-", "_")):
        return found
    raise UnknownKeyError(
        where, key, f"{section}{key}", f"{meant(key, known)}known keys are {', '.join(known) or 'none'}"
    )


def meant(name: str, known: Iterable[str]) -> str:
    """A question for an error about a name that is none of the known ones, if it resembles one; else nothing."""
    near = difflib.get_close_matches(name.replace("-", "_"), [*known], n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def check(value: Any, kind: Any, where: str) -> Any:
    """`value` as `kind`: the identity for a value of that type, with integers accepted as floats and lists as tuples.

    Raises:
        ConfigError: the value is of another type.
    """
    origin = get_origin(kind)
    if origin is dict and isinstance(value, str) and get_args(kind)[1] is str:
        value = {PRESET: value}
    if kind is Any:
        return value
    if origin is Literal:
        if value not in get_args(kind):
            known = ", ".join(map(str, get_args(kind)))
            raise ConfigError(f"{where}: expected one of {known}, found {value!r}{_instead_of_value(where, value)}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, found {value!r}")
        return tuple(check(v, get_args(kind)[0], f"{where}[{i}]") for i, v in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected a table of keys, found {value!r}")
        return {check(k, str, where): check(v, get_args(kind)[1], f"{where}.{k}") for k, v in value.items()}
    if origin in (typing.Union, types.UnionType):
        if value in (None, "") and type(None) in get_args(kind):
            return None
        return check(value, _member(kind, many=isinstance(value, list | tuple)), where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {kind.__name__}, found {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: expected a finite number, found {value}")
    return value


def _member(kind: Any, many: bool) -> Any:
    """The member of a union that a list, or a single value, is checked against: `int | tuple[int, ...]`."""
    members = [a for a in get_args(kind) if a is not type(None)]
    return next((m for m in members if (get_origin(m) is tuple) == many), members[0])


def parse(text: str, kind: Any, where: str) -> Any:
    """A flag's or `--set` value's text as `kind`; lists, and the KEY=VALUE of tables, are separated by commas.

    A text with a brace is one KEY=VALUE: templates have commas of their own. A comma in brackets separates nothing:
    `regex:a{1,3}` is one value. Nor does one without another KEY= behind it: `date=Jul 26, 2025` is one.

    Raises:
        ConfigError: the text is not a value of that type.
    """
    if get_origin(kind) is tuple:
        parts = re.split(r",(?![^{\[(]*[}\])])", text)
        return tuple(parse(t.strip(), get_args(kind)[0], where) for t in parts if t.strip())
    if get_origin(kind) is dict:
        if re.fullmatch(r"\w+", text):
            return {PRESET: text}
        texts = [text] if "{" in text else re.split(r",(?=[^,=]*=)|,\s*$", text)
        member = get_args(kind)[1]
        cut = str.rpartition if member in (int, float) else str.partition  # a source may be lang=en/*
        pairs = [cut(t, "=") for t in texts if t.strip()]
        wrong = next(("".join(pair) for pair in pairs if not pair[0].strip() or not pair[1]), None)
        if wrong is not None:
            raise ConfigError(f"{where}: expected KEY=VALUE, found {wrong!r}")
        return {key.strip(): parse(value.strip(), member, where) for key, _, value in pairs}
    if get_origin(kind) in (typing.Union, types.UnionType):
        if text == "" and type(None) in get_args(kind):
            return None
        return parse(text, _member(kind, many="," in text), where)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{where}: expected true or false, found {text!r}")
        return text.lower() == "true"
    if kind in (int, float):
        try:
            return check(kind(text.replace("_", "")), kind, where)
        except ValueError:
            raise ConfigError(f"{where}: expected {kind.__name__}, found {text!r}") from None
    return check(text, kind, where)


def assign(values: dict[str, Any], config: type, key: str, text: str, where: str = "", section: str = "") -> None:
    """Set a dotted `key` (`gopher_quality.min_words`) of a nested mapping to the parsed `text`, in place.

    `where` is the whole key in errors, with its stage; `section` as in `build`.

    Raises:
        ConfigError: the key names no field of `config`, or the text is not of its type.
    """
    where = where or f"--set {key}"
    head, _, rest = key.partition(".")
    o = _known({o.name: o for o in options(config)}, head, where, section)
    if get_origin(o.type) is dict and rest:
        values.setdefault(o.name, {})[rest] = parse(text, get_args(o.type)[1], where)
    elif o.nested and rest:
        assign(values.setdefault(o.name, {}), o.nested, rest, text, where, f"{section}{o.name}.")
    elif o.nested or rest:
        raise ConfigError(f"{where}: {o.name!r} is {'a section: name a key in it' if o.nested else 'no section'}")
    else:
        values[o.name] = parse(text, o.type, where)


def resolved(config: Any) -> dict[str, Any]:
    """Every value of a config that shapes its result, defaults included, as plain JSON types; of paths the name."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    for f in dataclasses.fields(config):
        value = plain[f.name]
        if not f.metadata.get("result", True) or (value is None and f.metadata.get("optional")):
            del plain[f.name]
        elif dataclasses.is_dataclass(getattr(config, f.name)):
            plain[f.name] = resolved(getattr(config, f.name))
        elif f.metadata.get("path") and value:
            plain[f.name] = _names(value)
    return plain


def _names(paths: Any) -> Any:
    """The last part of a path, or of each path of a list or table."""
    if isinstance(paths, dict):
        return {key: Path(path).name for key, path in paths.items()}
    return [Path(path).name for path in paths] if isinstance(paths, list) else Path(paths).name


def shares(config: Any, *names: str) -> None:
    """Raise ConfigError where a value of a config lies outside [0, 1]; for `__post_init__`."""
    for name in names:
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise ConfigError(f"{name} is a share and lies in [0, 1], found {getattr(config, name)}")


def at_least(config: Any, lowest: float, *names: str) -> None:
    """Raise ConfigError where a value of a config is below the lowest one; for `__post_init__`."""
    for name in names:
        if getattr(config, name) < lowest:
            raise ConfigError(f"{name} = {getattr(config, name)}: expected {lowest} or more")


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8; equal values give equal bytes.

    Raises:
        ValueError: NaN or infinity, which JSON does not know.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


CRC: Final = "crc32:"
"""What a checksum by CRC-32 begins with."""
_BLOCK: Final = 1 << 20
_hashed: dict[str, str] = {}
"""The CRC-32 of all that `digest_of` hashed in this process, by SHA-256: 200 bytes a file."""


def digest_of(file: Any, like: str = "") -> str:
    """SHA-256 of an open file's bytes, 64 hex digits; size and CRC-32 where `like` is a checksum of this kind.

    CRC-32 takes less than half of the time. It tells a flipped bit and a torn, lost or moved block, and is no
    protection from somebody who means to deceive. The process that wrote a file reads it several times: where `like`
    is the SHA-256 of what it hashed, bytes of the same size and CRC-32 are not hashed again.
    """
    known = like if like.startswith(CRC) else _hashed.get(like, "")
    block, sha256, crc, size = memoryview(bytearray(_BLOCK)), hashlib.sha256(), 0, 0
    while read := file.readinto(block):
        crc, size = zlib.crc32(block[:read], crc), size + read
        if not known:
            sha256.update(block[:read])
    found = f"{CRC}{crc:08x}:{size}"
    if like.startswith(CRC):
        return found
    if known:
        if found == known:
            return like
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256")
    _hashed[sha256.hexdigest()] = found
    return sha256.hexdigest()


def file_mark(path: Path) -> list[int]:
    """Size, times of change and inode: they change when a file does, and the status time cannot be set back."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


# What earlier versions had and this one has not.


@cache
def removed() -> dict[str, str]:
    """By a removed stage, or an option of a stage (with dots, also in nested sections): what to use instead."""
    return tomllib.loads(Path(__file__).with_name("removed.toml").read_text(encoding="utf-8"))


def _instead_of_value(where: str, value: Any) -> str:
    """What to use instead of a value of the option that a key or a flag ends with; empty where it was never one."""
    name = re.split(r"[.\s]", where)[-1].lstrip("-").replace("-", "_")
    return next((f". {text}" for known, text in removed().items() if known.endswith(f".{name}={value}")), "")


def instead_of(stage: str, key: str = "") -> str:
    """What to use instead of a stage or of one of its options; empty where it was never there."""
    return removed().get((f"{stage}.{key}" if key else stage).replace("-", "_"), "")
