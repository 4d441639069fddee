"""Recognises the tokenizers that the BPE kernels reproduce: byte-level BPE behind one of three regexes.

Every key of a `tokenizer.json` is looked at. One that is not known, or has a value whose effect is not implemented,
means that the library encodes instead: there is no "nearly the same tokenizer".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from datakit.pack._kernels_bpe_merge import ID_BITS, RANK_BITS
from datakit.pack._kernels_bpe_split import CL100K, GPT2

_TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REGEXES = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": (GPT2, 0),
    _HEAD + r"\p{N}{1,3}|" + _TAIL: (CL100K, 3),
    _HEAD + r"\p{N}|" + _TAIL: (CL100K, 1),
}
"""GPT-2; cl100k and Llama 3; Qwen2. Each leaves no character out, so isolating matches and removing the rest agree."""

_OFF: dict[str, tuple[Any, ...]] = {
    "dropout": (None, 0.0),
    "byte_fallback": (None, False),
    "fuse_unk": (None, False, True),
}
_OFF |= {"continuing_subword_prefix": (None, ""), "end_of_word_suffix": (None, "")}
_MODEL = {"type", "vocab", "merges", "unk_token", "ignore_merges", *_OFF}
_TOP = {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"}
IN_UTF8 = frozenset({*range(0xC0), *range(0xC2, 0xF5)})
"""Bytes that occur in text."""


class NotRecognised(Exception):  # noqa: N818
    """Why the library must encode."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """What a recognised tokenizer does."""

    pattern: int
    max_digits: int
    """Numbers a piece holds at most (CL100K)."""
    isolate_digits: bool
    """Each numeric character is cut out before the regex."""
    nfc: bool
    ignore_merges: bool
    """A piece that is a token is that token, whatever the merges make of it."""
    tokens: dict[bytes, int]
    """The vocabulary, by bytes. Bytes of text that are no token are left out of it, as the library does."""
    merges: list[tuple[bytes, bytes]]
    """In order of rank."""
    added: tuple[str, ...]


def recognise(spec: Mapping[str, Any]) -> Pipeline:
    """The pipeline of a parsed `tokenizer.json`, encoding without special tokens added around.

    Raises:
        NotRecognised: there is something in it that the kernels do not do.
    """
    _only(spec, _TOP | {"model"}, "the file")
    for name in ("truncation", "padding"):
        _want(spec.get(name) is None, f"{name} is set")
    pattern, max_digits, isolate = _pre_tokenizer(spec.get("pre_tokenizer"))
    nfc = _normalizer(spec.get("normalizer"))
    model = spec["model"]
    _only(model, _MODEL, "the model")
    _want(model.get("type") == "BPE", f"the model is {model.get('type')}")
    for name, values in _OFF.items():
        _want(model.get(name) in values, f"{name} is {model.get(name)!r}")
    tokens = dict(_vocabulary(model["vocab"]))
    small = max(tokens.values(), default=0) < (1 << ID_BITS) - 1 and len(model["merges"]) < 1 << RANK_BITS
    _want(small, f"it has more than {(1 << ID_BITS) - 1} tokens or {1 << RANK_BITS} merges")
    lacking = any(bytes([b]) not in tokens for b in IN_UTF8)
    _want(not (lacking and model.get("unk_token")), f"bytes are {model.get('unk_token')}")
    return Pipeline(
        pattern=pattern,
        max_digits=max_digits,
        isolate_digits=isolate,
        nfc=nfc,
        ignore_merges=bool(model.get("ignore_merges")),
        tokens=tokens,
        merges=[_merge(m) for m in model["merges"]],
        added=_added(spec.get("added_tokens") or [], nfc),
    )


def recognised(spec: Mapping[str, Any]) -> bool:
    """Whether `recognise` knows it."""
    try:
        recognise(spec)
    except NotRecognised:
        return False
    return True


def _want(condition: bool, otherwise: str) -> None:
    if not condition:
        raise NotRecognised(otherwise)


def _only(part: Mapping[str, Any], known: set[str], where: str) -> None:
    _want(part.keys() <= known, f"{where} has {', '.join(sorted(part.keys() - known))}")


def _steps(part: Any, name: str) -> list[dict[str, Any]]:
    """A Sequence's members, or the one there is."""
    if part is None:
        return []
    if part.get("type") != "Sequence":
        return [part]
    _only(part, {"type", name}, name)
    return [step for inner in part[name] for step in _steps(inner, name)]


def _normalizer(part: Any) -> bool:
    steps = _steps(part, "normalizers")
    _want(steps in ([], [{"type": "NFC"}]), f"the normalizer is {steps}")
    return bool(steps)


def _pre_tokenizer(part: Any) -> tuple[int, int, bool]:
    """Pattern, most digits of a piece, and whether digits are cut out before."""
    steps = _steps(part, "pretokenizers")
    isolate = steps[:1] == [{"type": "Digits", "individual_digits": True}]
    steps = steps[isolate:]
    _want(bool(steps) and steps[-1].get("type") == "ByteLevel", f"the last pre-tokenizer is {steps[-1:]}")
    byte_level = {"use_regex": True} | steps[-1]
    _only(byte_level, {"type", "add_prefix_space", "trim_offsets", "use_regex"}, "ByteLevel")
    _want(byte_level["add_prefix_space"] is False, "ByteLevel adds a space")
    if byte_level["use_regex"]:
        _want(len(steps) == 1, f"a pre-tokenizer is {steps[:-1]}")
        return GPT2, 0, isolate
    _want(len(steps) == 2 and steps[0].get("type") == "Split", f"a pre-tokenizer is {steps[:-1]}")
    split = steps[0]
    _only(split, {"type", "pattern", "behavior", "invert"}, "Split")
    whole = {"Isolated": False, "Removed": True}
    _want(whole.get(split["behavior"]) is split["invert"], f"Split is {split['behavior']}, invert {split['invert']}")
    regex = split["pattern"].get("Regex")
    _want(regex in REGEXES, f"the regex is {regex!r}")
    pattern, max_digits = REGEXES[regex]
    _want(pattern == GPT2 or not isolate, "digits are cut out before the regex")
    return pattern, max_digits, isolate


def _added(tokens: list[dict[str, Any]], nfc: bool) -> tuple[str, ...]:
    for token in tokens:
        for name in ("single_word", "lstrip", "rstrip"):
            _want(not token.get(name), f"added token {token['content']!r} has {name}")
    if not inert(token["content"] for token in tokens):  # else nothing hangs on which are found first
        _found_first(tokens, nfc)
    _want(all(token["content"] for token in tokens), "an added token is empty")
    return tuple(token["content"] for token in tokens)


def _found_first(tokens: list[dict[str, Any]], nfc: bool) -> None:
    """Added tokens must be found in one go, in the text as it is."""
    late = {bool(token.get("normalized", not token.get("special"))) for token in tokens}
    _want(late != {True, False} and not (nfc and True in late), "added tokens are found after normalisation")


def inert(texts: Iterable[str]) -> bool:
    """Whether texts are of noncharacters and private use alone.

    No Unicode version will ever give those a decomposition or a combining class, so NFC neither changes them nor
    composes or sorts across them.
    """
    return all(0xFDD0 <= ord(c) < 0xFDF0 or 0xE000 <= ord(c) < 0xF900 for text in texts for c in text)


def _alphabet() -> dict[str, int]:
    """GPT-2's characters for bytes: printable ones stand for themselves, the others follow from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (b for b in range(256) if b not in printable)
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTE_OF = _alphabet()


def _bytes(token: str) -> bytes:
    return bytes([_BYTE_OF[c] for c in token])


def _vocabulary(vocab: Mapping[str, int]) -> Iterator[tuple[bytes, int]]:
    """Tokens by bytes; those that are not spelled in the byte alphabet never come out of text."""
    for token, number in vocab.items():
        try:
            yield _bytes(token), number
        except KeyError:
            continue


def _merge(pair: str | list[str]) -> tuple[bytes, bytes]:
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    try:
        return _bytes(left), _bytes(right)
    except KeyError as e:
        raise NotRecognised(f"merge {pair} has a character that stands for no byte: {e}") from None
