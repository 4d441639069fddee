"""What ingest reads: its configuration."""

from dataclasses import dataclass
from typing import Literal

from datakit.config import option
from datakit.errors import ConfigError
from datakit.read.layouts.recognise import BY_NAME


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestConfig:
    """What shapes the rows that are read."""

    kind: Literal["auto", "text", "sft", "preference"] = option(
        "auto", "the kind of every row; auto: what all files have in common"
    )
    layout: str = option(
        "auto", "the layout of every file by name; auto: each file's own, from the fields of its records"
    )
    text_split: Literal["file", "line", "paragraph"] = option("file", "what is one document in plain text files")
    text_field: str = option("", "the field that holds a document's text; empty: text, content, markdown and the like")
    id_field: str = option("", "the field that holds a record's id; empty: id")
    other_kinds: Literal["refuse", "quarantine"] = option(
        "refuse", "what becomes of files of another kind than the one asked for"
    )
    shard_mb: int = option(16, "uncompressed MiB of input per unit of work, and so per shard")

    def __post_init__(self) -> None:
        if self.layout != "auto" and self.layout not in BY_NAME:
            raise ConfigError(f"layout is {self.layout!r}; known layouts are auto, {', '.join(BY_NAME)}")
        if self.shard_mb < 1:
            raise ConfigError(f"shard_mb is {self.shard_mb}; it should be at least 1")
