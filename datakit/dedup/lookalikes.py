"""Words that are one letter away from another word, so that neither is a typing error of the other: house and horse.

Words of at least four letters of which `edits_of_spelling` would take one for the other. Counted in two ways: in
books, documentation and sentences that people wrote in forty languages, words that stand in several texts; and the
frequent words of twenty languages that spelling dictionaries know (frequencies of Speer's wordfreq, 2022: English from
0.4 in a million words, other languages from 2 to 16).

They stand in lookalikes.txt, one on a line.
"""

import hashlib
from pathlib import Path

from datakit.errors import IntegrityError

FILE = Path(__file__).with_name("lookalikes.txt")
SHA256 = "cff8d8d6bea1a7e6661f07f75db3b6834ef20fe81b647ecb24f55ff893881cb2"
"""Of the file. Stages know by their code what they are up to date with, so an edited list needs a new value here."""


def lookalikes() -> str:
    """The words, in small letters.

    Raises:
        IntegrityError: the file is not the one that belongs to this code.
    """
    data = FILE.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise IntegrityError(f"{FILE}: its SHA-256 is not that in lookalikes.py; install datakit again")
    return data.decode()
