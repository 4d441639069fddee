"""Questions and answers from the documentation that every Python installation carries.

Docstrings are read from the standard library's source files with `ast`: no module is imported.
Names built into the interpreter have no source file; their docstrings are read from the objects. What an installation
lacks is left out.
"""

import ast
import inspect
import itertools
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Kind = Literal["module", "class", "function", "method"]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

EVERYDAY: Final = frozenset(
    ("bisect", "calendar", "collections", "copy", "functools", "heapq", "json", "random", "shutil", "textwrap")
)
"""The modules that questions are about: common ones. All modules would be too many for such a small model."""

BUILT_IN: Final = (str, int, float, list, dict, set, math, itertools)
"""Types and modules written in C; the docstrings of their public names are read."""

MIN_WORDS: Final = 12
MAX_CHARS: Final = 250
MAX_SIGNATURE_CHARS: Final = 100

QUESTIONS: Final[dict[Kind, tuple[str, ...]]] = {
    "module": ("What is the module {} about?", "What does the module {} offer?", "When do I need the module {}?"),
    "class": ("What is the class {} for?", "What does an object of the class {} represent?", "Explain the class {}."),
    "function": ("What does {} do?", "How do I use {}?", "Explain the function {}.", "What is {} good for?"),
    "method": ("What does the method {} do?", "What happens if I call {}?", "Explain {}.", "When do I use {}?"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One documented name: its dotted name, how it is called ("" where unknown), and its cleaned docstring."""

    kind: Kind
    name: str
    signature: str
    doc: str

    def question(self) -> str:
        """One of the kind's questions; the name alone decides which."""
        forms = QUESTIONS[self.kind]
        return forms[zlib.crc32(self.name.encode()) % len(forms)].format(self.name)

    def answer(self) -> str:
        """The call, then as many whole paragraphs of the docstring as fit into `MAX_CHARS`."""
        paragraphs = self.doc.split("\n\n")
        sizes = itertools.accumulate(len(p) + 2 for p in paragraphs)
        fitting = [p for p, size in zip(paragraphs, sizes, strict=True) if size <= MAX_CHARS]
        return "\n\n".join(([self.signature] if self.signature else []) + fitting)


def collect(stdlib: Path) -> list[Entry]:
    """The documented public names below a folder of Python sources and in `BUILT_IN`, one a name, sorted by name."""
    entries: dict[str, Entry] = {}
    for entry in itertools.chain(built_in_entries(), *(file_entries(p, m) for p, m in modules(stdlib))):
        if is_useful(entry):
            entries.setdefault(entry.name, entry)
    return [entries[name] for name in sorted(entries)]


def is_useful(entry: Entry) -> bool:
    """Whether there is something to read: enough words, and a first paragraph that fits into an answer."""
    return len(entry.doc.split()) >= MIN_WORDS and len(entry.doc.split("\n\n")[0]) + 2 <= MAX_CHARS


def modules(stdlib: Path) -> Iterator[tuple[Path, str]]:
    """(source file, dotted name) of the public modules below a folder that belong to `EVERYDAY`, sorted by path."""
    for path in sorted(stdlib.rglob("*.py")):
        parts = path.relative_to(stdlib).with_suffix("").parts
        names = parts[:-1] if parts[-1] == "__init__" else parts
        if names and names[0] in EVERYDAY and not any(n.startswith("_") or n.startswith("test") for n in names):
            yield path, ".".join(names)


def file_entries(path: Path, module: str) -> Iterator[Entry]:
    """A module's own docstring, and those of its functions and classes; methods would be as many again.

    A file that this interpreter cannot read or parse (a distribution may ship such) gives nothing.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    yield Entry("module", module, "", ast.get_docstring(tree) or "")
    for node in public(tree.body):
        kind: Kind = "class" if isinstance(node, ast.ClassDef) else "function"
        name = f"{module}.{node.name}"
        yield Entry(kind, name, signature(name, node), ast.get_docstring(node) or "")


def public(body: list[ast.stmt]) -> Iterator[Definition]:
    """The functions and classes of a block whose names do not begin with an underscore."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def signature(name: str, node: Definition) -> str:
    """How a function is called, without annotations; "" for a class, and where it would be too long."""
    if isinstance(node, ast.ClassDef):
        return ""
    given = node.args
    for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if one is not None:
            one.annotation = None
    call = f"{name}({ast.unparse(given)})"
    return call if len(call) <= MAX_SIGNATURE_CHARS else ""


def built_in_entries() -> Iterator[Entry]:
    """The public functions and methods of `BUILT_IN`."""
    for owner in BUILT_IN:
        kind: Kind = "method" if isinstance(owner, type) else "function"
        for name in sorted(n for n in dir(owner) if not n.startswith("_")):
            member = getattr(owner, name)
            if callable(member):
                yield Entry(kind, f"{owner.__name__}.{name}", "", inspect.getdoc(member) or "")


def topics() -> dict[str, str]:
    """The language reference that pydoc shows, by topic, sorted; empty where the installation has none."""
    try:
        from pydoc_data.topics import topics as found
    except ImportError:
        return {}
    return {name: found[name].strip() for name in sorted(found)}
