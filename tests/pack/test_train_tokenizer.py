import json

import pytest

from datakit.errors import ConfigError, InputError
from datakit.pack.train_tokenizer import TokenizerConfig, train_tokenizer

TEXTS = ["the quick brown fox", "快速的棕色狐狸", "1234 5678\n"] * 50


def test_same_texts_give_the_same_bytes():
    config = TokenizerConfig(vocab_size=300)
    assert train_tokenizer(TEXTS, config) == train_tokenizer(iter(TEXTS), config)


def test_special_tokens_come_first_and_every_byte_is_known(small):
    assert [small.token(i) for i in range(3)] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    for text in ("\x00\x7f", "🦊 ẞ \U0010fffe", "a\r\n\tb"):
        assert small.decode(small.encode_text(text)) == text


def test_digits_stand_alone():
    from datakit.pack.chat import ChatTokenizer

    files = train_tokenizer(["2024 2024 2024"] * 20, TokenizerConfig(vocab_size=300))
    tokenizer = ChatTokenizer(files["tokenizer.json"], json.loads(files["tokenizer_config.json"]), "", "test")
    assert len(tokenizer.encode_text("2024")) == 4


def test_training_reads_no_further_than_it_is_asked_to():
    read = []
    texts = (read.append(i) or "abcde" for i in range(100_000))
    train_tokenizer(texts, TokenizerConfig(vocab_size=260, max_chars=50))
    assert len(read) < 5000


def test_no_text_is_an_error():
    with pytest.raises(InputError, match="no text"):
        train_tokenizer(["", ""], TokenizerConfig())


@pytest.mark.parametrize("bad", [{"vocab_size": 258}, {"min_frequency": 0}, {"max_chars": -1}])
def test_senseless_values_are_refused(bad):
    with pytest.raises(ConfigError):
        TokenizerConfig(**bad)
