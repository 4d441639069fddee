"""The tags of an HTML page, counted in its bytes before any parser builds a tree."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

_LESS, _GREATER, _SLASH, _BANG, _HYPHEN = 60, 62, 47, 33, 45
_QUOTE, _APOSTROPHE, _EQUALS = 34, 39, 61
_NAME_BYTES = 8


@kernel(inline="always")
def _is_letter(c):
    return (65 <= c <= 90) or (97 <= c <= 122)


@kernel(inline="always")
def _lower(c):
    return c + 32 if 65 <= c <= 90 else c


@kernel
def _name(data, i):
    """(the first eight bytes of a tag's name in lower case as one number, one past the name)."""
    n, packed, length = len(data), np.uint64(0), 0
    while i < n:
        c = data[i]
        if not (_is_letter(c) or 48 <= c <= 57 or c == _HYPHEN):
            break
        if length < _NAME_BYTES:
            packed = (packed << np.uint64(8)) | np.uint64(_lower(c))
        length += 1
        i += 1
    return packed, i


@kernel
def _tag_end(data, i):
    """(one past the `>` of a tag whose name ends at i, whether it ends with `/>`). A quoted value may hold a `>`."""
    n, after_equals = len(data), False
    while i < n:
        c = data[i]
        if c == _GREATER:
            return i + 1, data[i - 1] == _SLASH
        if after_equals and c in (_QUOTE, _APOSTROPHE):
            i += 1
            while i < n and data[i] != c:
                i += 1
        if c > 32:
            after_equals = c == _EQUALS
        i += 1
    return n, False


@kernel
def _raw_end(data, i, name):
    """Where the end tag of this name begins, or the end of the data: inside of a script, `<` is no tag."""
    n = len(data)
    while i < n:
        if data[i] == _LESS and i + 1 < n and data[i + 1] == _SLASH:
            found, _ = _name(data, i + 2)
            if found == name:
                return i
        i += 1
    return n


@kernel
def _contains(names, name):
    for other in names:  # noqa: SIM110 - numba
        if other == name:
            return True
    return False


@kernel
def tags_and_depth(data, void, raw, foreign, max_depth):
    """(start tags, most open elements at one time) of the bytes of a page; it stops at more than `max_depth` open ones.

    An end tag closes the nearest open element of its name and all inside it; one without such an element counts as
    nothing. `void`: names (as `_name` packs them) of elements without end tags, or whose end tags may be left out;
    they do not count as open. `raw`: names of elements whose content is text. `foreign`: names of `svg` and `math`,
    in which every element is open until its end tag or its `/>`, and of `foreignObject`, which ends that.
    """
    n, i, tags, depth, deepest, outside = len(data), 0, 0, 0, 0, -1
    opened = np.empty(max_depth + 2, np.uint64)
    while i < n - 1:
        if data[i] != _LESS:
            i += 1
            continue
        c = data[i + 1]
        if _is_letter(c):
            name, i = _name(data, i + 1)
            i, closed = _tag_end(data, i)
            tags += 1
            if outside < 0 and _contains(raw, name):
                i = _raw_end(data, i, name)
            elif not closed if outside >= 0 else not _contains(void, name):
                if name == foreign[2]:
                    outside = -1
                elif outside < 0 and (name == foreign[0] or name == foreign[1]):
                    outside = -1 if closed else depth
                opened[depth] = name
                depth += 1
                deepest = max(deepest, depth)
                if depth > max_depth:
                    break
        elif c == _SLASH:
            name, i = _name(data, i + 2)
            for k in range(depth - 1, -1, -1):
                if opened[k] == name:
                    depth = k
                    if depth <= outside:
                        outside = -1
                    break
        elif c == _BANG and i + 3 < n and data[i + 2] == _HYPHEN and data[i + 3] == _HYPHEN:
            i += 4
            while i < n and not (data[i] == _GREATER and data[i - 1] == _HYPHEN and data[i - 2] == _HYPHEN):
                i += 1
        else:
            i += 1
    return tags, deepest
