"""Labels of language models as ISO 639-3 codes and as BCP 47 tags, so that rows of different models can be compared.

lid.176 writes the codes of Wikipedias (`en`, `arz`, `als`), GlotLID ISO 639-3 with a script (`eng_Latn`). The tables
are those of the package langcodes, which has the registry of IANA and the CLDR. A macrolanguage stays one: `zh` is
`zho`, while GlotLID's `cmn_Hani` is `cmn`.
"""

import functools
import re
from typing import Final, Literal

Code = Literal["model", "iso639_3", "bcp47"]

WIKIPEDIA: Final = {"als": "gsw", "bh": "bho", "eml": "egl", "sh": "hbs"}
"""Codes of Wikipedias, without a script, that mean another language in ISO 639-3, or none. (`als` is Tosk Albanian
there; `nah`, a group of languages, has no code and stays.)"""


@functools.cache
def converted(label: str, code: Code) -> str:
    """A model's label as that code. Labels that are no codes of languages stay as they are."""
    if code == "model" or not re.fullmatch(r"[a-z]{2,3}(_[A-Z][a-z]{3}(_\w+)?)?", label):
        return label
    from langcodes import Language

    language, _, script = label.partition("_")
    language = WIKIPEDIA.get(language, language) if not script else language
    try:
        if code == "iso639_3":
            return str(Language.get(language, normalize=False).to_alpha3())
        tag = f"{language}-{script[:4]}" if script[:4] not in ("", "Zzzz") else language
        return str(Language.get(tag).simplify_script().to_tag())
    except LookupError:  # no such language in the tables
        return label
