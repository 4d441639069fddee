"""Characters that end lines and sentences, and those that may stand behind the latter."""

import re

BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` ends a line."""

_TERMINAL_RANGES = (
    "!.?\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4-\u17d6\u17d9\u17da\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f"
    "\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u2024\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u2e60\u2e61"
    "\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb"
    "\ufe12\ufe15\ufe16\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
    "\U00010a56\U00010a57\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1"
    "\U00011141-\U00011143\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c"
    "\U000112a9\U000113d4\U000113d5\U0001144b\U0001144c\U000115c2\U000115c3\U000115c9-\U000115d7\U00011641\U00011642"
    "\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c\U00011c41\U00011c42\U00011ef7"
    "\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44\U00016d6e\U00016d6f"
    "\U00016e98\U0001bc9f\U0001da88"
)
"""As in a regular expression, a hyphen makes a range."""

QUOTES = "\"'”’»›」』｣“‘"
"""What may stand behind a sentence's mark: closing quotes, those among them that open in other languages."""


def _expand(ranges: str) -> str:
    """Every character of a list with ranges: "a-cx" is "abcx"."""
    spans = re.findall("(.)-(.)|(.)", ranges, re.DOTALL)
    return "".join(alone or "".join(map(chr, range(ord(first), ord(last) + 1))) for first, last, alone in spans)


TERMINALS = _expand(_TERMINAL_RANGES)
"""What a sentence ends with: Unicode's property Sentence_Terminal (UAX #44), and the Khmer signs that end one too."""
