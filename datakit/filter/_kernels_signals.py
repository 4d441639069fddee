"""The names of what the signal pass counts, their places, and the flags of characters. Constants only."""

SIGNALS = (
    "chars",  # code points of the row, white space included
    "words",
    "spaceless_words",  # words that are one character of a script written without spaces
    "kana_han_words",  # of those, characters of Han, Hiragana and Katakana
    "word_chars",  # code points in words
    "spaced_chars",  # code points in words with spaces around them, combining marks not counted
    "symbol_words",  # words without any letter, mark or digit
    "symbol_chars",  # their code points
    "alpha_words",  # words with a letter
    "foreign_words",  # words with a letter beyond ASCII
    "hashes",  # "#"
    "ellipses",  # "..." and "…"
    "stop_words",  # how many different ones of Gopher's eight English words
    "max_word_chars",
    "all_lines",  # blank ones too
    "lines",  # with anything but white space in them
    "bullet_lines",
    "ellipsis_lines",
    "terminal_lines",  # that end in a sentence's mark
    "short_lines",  # at most SHORT_LINE_CHARS code points, one of Han or kana counted as three
    "line_breaks",
    "line_chars",  # code points in lines, white space at their ends not counted
    "dup_lines",  # copies after the first
    "dup_line_chars",
    "all_dup_lines",  # every copy of what occurs twice or more
    "all_dup_line_chars",
    "paragraphs",  # lines between blank lines
    "dup_paragraphs",
    "dup_paragraph_chars",
    "all_dup_paragraphs",
    "all_dup_paragraph_chars",
    "ngram_step",  # words of the text to one of an n-gram
    "top_2gram_chars",
    "top_3gram_chars",
    "top_4gram_chars",
    "dup_5gram_chars",
    "dup_6gram_chars",
    "dup_7gram_chars",
    "dup_8gram_chars",
    "dup_9gram_chars",
    "dup_10gram_chars",
    "all_dup_5gram_chars",
    "all_dup_6gram_chars",
    "all_dup_7gram_chars",
    "all_dup_8gram_chars",
    "all_dup_9gram_chars",
    "all_dup_10gram_chars",
)
_AT = {name: place for place, name in enumerate(SIGNALS)}
CHARS, WORDS, SPACELESS_WORDS, WORD_CHARS = _AT["chars"], _AT["words"], _AT["spaceless_words"], _AT["word_chars"]
SPACED_CHARS, SYMBOL_WORDS, SYMBOL_CHARS = _AT["spaced_chars"], _AT["symbol_words"], _AT["symbol_chars"]
ALPHA_WORDS, FOREIGN_WORDS, STOP_WORDS = _AT["alpha_words"], _AT["foreign_words"], _AT["stop_words"]
HASHES, ELLIPSES = _AT["hashes"], _AT["ellipses"]
MAX_WORD_CHARS, LINES, BULLET_LINES = _AT["max_word_chars"], _AT["lines"], _AT["bullet_lines"]
ELLIPSIS_LINES, TERMINAL_LINES, SHORT_LINES = _AT["ellipsis_lines"], _AT["terminal_lines"], _AT["short_lines"]
ALL_LINES, LINE_BREAKS, LINE_CHARS, DUP_LINES = (
    _AT["all_lines"],
    _AT["line_breaks"],
    _AT["line_chars"],
    _AT["dup_lines"],
)
PARAGRAPHS, DUP_PARAGRAPHS = _AT["paragraphs"], _AT["dup_paragraphs"]
KANA_HAN_WORDS, NGRAM_STEP, TOP_NGRAM = _AT["kana_han_words"], _AT["ngram_step"], _AT["top_2gram_chars"]

# The flags of datakit.filter.chars; a test holds the two together.
SPACE, BREAK, LETTER, MARK, NUMBER, SPACELESS, TERMINAL = 1, 2, 4, 8, 16, 32, 64
FOREIGN_LETTER = 256  # of a word: a letter beyond ASCII

SHORT_LINE_CHARS = 30
MAX_STOP_WORD_CHARS = 40  # with the punctuation around it
# An English word takes about six characters with its space, one of Chinese or Japanese two.
KANA_HAN_EXTRA = 2
# A word of Chinese or Japanese is about two characters, one of Thai, Lao, Khmer or Burmese about four with its marks:
# n-grams of single characters repeat in any text.
KANA_HAN_STEP, OTHER_STEP = 2, 4
FIRST_KANA_HAN = 0x2E80  # the other scripts without spaces come before
