"""Lines that may hold a private value, found byte by byte; a line without any of these signs has none."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from datakit.kernels import kernel

NUMBER, TOKEN, AT, DOTS, COLONS, WORD = 1, 2, 4, 8, 16, 32
"""Signs of a line: six digits close together; 16 characters without a space, digits and letters among them; @ or
(at); four numbers with dots; a hexadecimal word with colons; a word like "password"."""

_LEAST_DIGITS, _LEAST_TOKEN, _MOST_GAP = 6, 16, 3


@kernel
def candidates(data, offsets, words):
    """The lines with a sign.

    data uint8 and offsets int64[N+1] of the texts; words uint8[K, 12]: the words, lower case, then
    zeros, in ascending order.
    Returns int64[H, 4]: text, first byte, last byte + 1, signs.
    """
    begins = np.zeros((1 << 16) + 1, np.int64)  # by its first two bytes, the number of the first such word
    for k in range(words.shape[0]):
        begins[(np.int64(words[k, 0]) << 8 | np.int64(words[k, 1])) + 1] += 1
    for two in range(1 << 16):
        begins[two + 1] += begins[two]
    out, made = np.empty((1024, 4), np.int64), 0
    for text in range(offsets.size - 1):
        at, end = offsets[text], offsets[text + 1]
        while at < end:
            first, signs = at, 0
            digits, gap, token, in_token, letters, dots, colons = 0, 0, 0, 0, 0, 0, 0
            last = np.uint8(32)
            while at < end and data[at] != 10:
                byte = data[at]
                lower = byte | 32
                is_digit = 48 <= byte <= 57
                is_letter = 97 <= lower <= 122
                if is_digit:
                    digits, gap = digits + 1, 0
                    if digits >= _LEAST_DIGITS:
                        signs |= NUMBER
                elif digits:
                    gap += 1
                    # any bytes beyond ASCII may be a space of two bytes
                    if gap > _MOST_GAP or (is_letter and gap > 1 and token < 5):
                        digits = 0
                if is_digit or is_letter or byte == 95 or byte == 43 or 45 <= byte <= 47 or byte == 126 or byte == 61:
                    token += 1
                    in_token += is_digit
                    letters += is_letter
                    if letters and ((token >= _LEAST_TOKEN and in_token >= 2) or in_token >= 4):
                        signs |= TOKEN if token >= _LEAST_TOKEN else NUMBER
                        if in_token >= 4:
                            signs |= NUMBER
                elif byte != 58:  # a colon joins the parts of some keys
                    token, in_token, letters = 0, 0, 0
                if byte == 46 and 48 <= last <= 57:
                    dots += 1
                    if dots == 3:
                        signs |= DOTS
                elif not is_digit:
                    dots = 0
                if byte == 58:
                    colons += 1
                    if colons >= 2:
                        signs |= COLONS
                elif not (is_digit or 97 <= lower <= 102):
                    colons = 0
                if byte == 64:
                    signs |= AT
                elif lower == 116 and last | 32 == 97 and at + 1 < end and data[at + 1] in (41, 93, 125, 32):
                    before = at - 2
                    if before >= first and data[before] == 32:
                        before -= 1
                    if before >= first and data[before] in (40, 91, 123):
                        signs |= AT
                follows = data[at + 1] if at + 1 < end else np.uint8(0)
                lower_two = np.int64(lower if is_letter else byte) << 8 | np.int64(
                    follows | 32 if follows < 91 else follows
                )
                for k in range(begins[lower_two], begins[lower_two + 1]):
                    size = 0
                    while size < words.shape[1] and words[k, size] and at + size < end:
                        other = data[at + size]
                        other = other | 32 if 65 <= other <= 90 else other
                        if other != words[k, size]:
                            break
                        size += 1
                    if size == words.shape[1] or words[k, size] == 0:
                        signs |= WORD
                last = byte
                at += 1
            if signs:
                if made == out.shape[0]:
                    larger = np.empty((2 * made, 4), np.int64)
                    larger[:made] = out
                    out = larger
                out[made, 0], out[made, 1], out[made, 2], out[made, 3] = text, first, at, signs
                made += 1
            at += 1
    return out[:made]
