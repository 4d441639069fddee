"""The card of an exported dataset: README.md with the YAML head that the Hugging Face Hub and `datasets` read.

Below the head it says what the rows are, what each stage kept and dropped, with which settings, and how to load it.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datakit.config import resolved
from datakit.engine.recipe import config_class, stage_class
from datakit.manifest import Manifest, ancestors

if TYPE_CHECKING:
    from datakit.report.export import ExportConfig, Exported

MOST_SOURCES = 50
"""Sources that are listed, the largest first; the others are counted."""
LEAST_LANGUAGE = 0.01
"""The share of rows from which on a language is named in the head."""

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
"""The limits of the Hub's size categories: powers of ten, from a thousand on."""
_TASKS = {"document": "text-generation", "conversation": "text-generation", "preference": "reinforcement-learning"}
_ROWS = {
    "document": "Documents: plain text, for pretraining.",
    "conversation": "Conversations: messages in order, for supervised fine-tuning.",
    "preference": "Preference pairs: a prompt, the answer that was chosen and the one that was rejected; a judged "
    "answer has an empty other side.",
    "tokens": "Token ids with the spans that a model learns (`label_spans`; null: all of them).",
    "tokens_preference": "Token ids of both sides of preference pairs, with the spans that a model learns.",
    "packed": "Packed rows of token ids: `labels` are aligned with `input_ids` and -100 where nothing is learnt, "
    "`position_ids` start at 0 in each sequence, `seq_lens` are the lengths of the row's sequences.",
}


def card(path: Path, made: "Exported", config: "ExportConfig") -> str:
    """The card of what was exported from the manifest at `path`."""
    chain = [manifest for _, manifest in reversed(ancestors(path)) if stage_class(manifest.stage).makes_rows]
    title = config.title or made.manifest.dataset
    parts = [
        _head(title, made, config),
        f"# {_line(title)}\n",
        _ROWS["packed" if made.manifest.stage == "pack" else made.manifest.kind] + "\n",
        _files(made),
        _loading(made),
        _license(config),
        "## What was done\n\n" + "\n".join(_stages(chain)) + "\n",
        "\n".join(_sources(made)),
        "## Settings\n\nAll that differ from datakit's defaults.\n\n```toml\n" + "\n".join(_recipe(chain)) + "\n```\n",
        "## Check it\n\n`sha256sum -c SHA256SUMS` in this folder compares every file. Made by "
        f"[datakit](https://pypi.org/project/datakit/) from {made.manifest.dataset} / {made.manifest.stage}, version "
        f"{made.manifest.version}: the same raw files and settings give the same version.\n",
    ]
    return "\n".join(part for part in parts if part)


def _head(title: str, made: "Exported", config: "ExportConfig") -> str:
    total = sum(made.languages.values())
    languages = [
        code for code, n in made.languages.most_common() if code != "und" and n >= LEAST_LANGUAGE * max(total, 1)
    ]
    lines = ["---", f"pretty_name: {_yaml(title)}", f"license: {config.license or 'unknown'}"]
    if languages:
        lines += ["language:", *(f"- {_yaml(code)}" for code in languages)]
    if task := _TASKS.get(made.manifest.kind):
        lines += ["task_categories:", f"- {task}"]
    lines += [
        "size_categories:",
        f"- {_size(made.rows)}",
        "tags:",
        "- datakit",
        f"- {made.manifest.kind.replace('_', '-')}",
    ]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split in made.splits:
        lines += [f"  - split: {split.name}", f"    path: data/{split.name}-*"]
    lines += ["dataset_info:", "  splits:"]
    for split in made.splits:
        lines += [f"  - name: {split.name}", f"    num_examples: {split.rows}", f"    num_bytes: {split.bytes}"]
    size = sum((made.folder / name).stat().st_size for split in made.splits for name in split.files)
    lines += [f"  download_size: {size}", f"  dataset_size: {sum(split.bytes for split in made.splits)}", "---", ""]
    return "\n".join(lines)


def _size(rows: int) -> str:
    """The size category of the Hub."""
    if rows < 1000:
        return "n<1K"
    for power, (low, high) in enumerate(pairwise(_SIZES), start=4):
        if rows < 10**power:
            return f"{low}<n<{high}"
    return "n>1T"


def _files(made: "Exported") -> str:
    lines = ["| split | rows | files |", "| --- | ---: | ---: |"]
    lines += [f"| {split.name} | {split.rows:,} | {len(split.files):,} |" for split in made.splits]
    columns = [f"| {_code(name)} | {_code(kind)} |" for name, kind in made.columns.items()]
    return "\n".join([*lines, "", "| column | type |", "| --- | --- |", *columns, ""])


def _loading(made: "Exported") -> str:
    reader = "read_parquet" if made.format == "parquet" else "read_json"
    names = sorted(name for split in made.splits for name in split.files)
    zstd = " For zstd, `datasets` needs `pip install zstandard`." if made.format == "jsonl.zst" else ""
    other = f"pandas.{reader}({names[0]!r}{', lines=True' if reader == 'read_json' else ''})"
    return (
        "## Load it\n\n```python\nfrom datasets import load_dataset\n\n"
        f'rows = load_dataset("path/of/this/folder", split="{made.splits[0].name}")\n```\n\n'
        f"or a file alone: `{other}`.{zstd}\n"
    )


def _license(config: "ExportConfig") -> str:
    said = f"`{config.license}`." if config.license else "Not stated. Ask who gave you this dataset before you use it."
    return f"## License\n\n{said}\n"


def _stages(chain: list[Manifest]) -> Iterator[str]:
    """A table of the stages: rows in, kept, and dropped by reason."""
    yield "| stage | rows in | kept | dropped |"
    yield "| --- | ---: | ---: | --- |"
    for manifest in chain:
        rows = manifest.ledger.rows
        lost = [f"{n:,} {reason}" for reason, n in sorted(rows.dropped.items(), key=lambda i: (-i[1], i[0]))]
        lost += [f"{rows.quarantined:,} could not be read"] if rows.quarantined else []
        lost += [f"{rows.edited:,} of the kept were edited"] if rows.edited else []
        yield f"| {manifest.stage} | {rows.into:,} | {rows.kept:,} | {', '.join(lost)} |"


def _sources(made: "Exported") -> Iterator[str]:
    if made.sources:
        yield "## Sources\n\n| source | rows |\n| --- | ---: |"
        shown = sorted(made.sources.items(), key=lambda item: (-item[1], item[0]))
        yield from (f"| {_code(name)} | {n:,} |" for name, n in shown[:MOST_SOURCES])
        if len(shown) > MOST_SOURCES:
            rest = shown[MOST_SOURCES:]
            yield f"| {len(rest):,} more | {sum(n for _, n in rest):,} |"
        yield ""


def _recipe(chain: list[Manifest]) -> Iterator[str]:
    """The settings of each stage that are not its defaults, as the sections of a recipe."""
    yield "[dataset]"
    yield f"stages = {json.dumps([m.stage for m in chain])}"
    for manifest in chain:
        yield from _section(manifest.stage, manifest.config, resolved(config_class(manifest.stage)()))


def _section(name: str, values: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    tables = {k: v for k, v in values.items() if isinstance(v, dict) and isinstance(defaults.get(k), dict)}
    other = {k: v for k, v in values.items() if k not in tables and v != defaults.get(k)}
    if other:
        yield f"\n[{name}]"
        for key, value in other.items():
            yield f"{key} = {_toml(value)}"
    for key, table in tables.items():
        yield from _section(f"{name}.{key}", table, defaults[key])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return '""' if value is None else json.dumps(value, ensure_ascii=False)


# Text from data, where it cannot become markup.


def _yaml(text: str) -> str:
    return json.dumps(text)  # a string of JSON is one of YAML


def _line(text: str) -> str:
    """The text on one line, with the characters of Markdown and HTML escaped."""
    return " ".join(re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text).split())


def _code(text: str) -> str:
    """The text as code in a cell of a table."""
    return "`" + " ".join(text.replace("`", "'").replace("|", "\\|").split()) + "`"
