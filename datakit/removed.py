"""What earlier versions had and this one has not, with what to use instead.

A recipe, a flag or an argument that names one of these ends with its sentence. Standard library only.
"""

REMOVED: dict[str, str] = {
    "dedup_lines": 'Use dedup_repeats, whose unit is "line" by default; "paragraph" is another.',
    "dedup_spans": 'Use dedup_repeats with unit = "sentence"; window is the number of sentences.',
    "dedup_substrings": 'Use dedup_repeats with unit = "token"; window is the number of tokens.',
    "dedup_ngrams": 'Use dedup_repeats with unit = "token", window = 13, max_repeated_share = 0.8.',
    "dedup.cluster": "Leave it out: every cluster is a star, so each dropped row is similar to the row that stays.",
    "dedup.compare": "Leave it out: documents are compared by words, conversations by match (exact, loose, near).",
    "classifier.piece_chars": "It is a constant (2,000 characters): cut longer rows yourself if you want other pieces.",
    "classifier.max_pieces": "It is a constant (20): repeat the rows that shall count more.",
    "classifier.threads": "Training takes one thread, so that equal examples give equal models.",
    "dedup_semantic.min_shared_facts": "Raise threshold, and read the pairs: names and numbers are not compared.",
    "dedup_semantic.seed": "It is a constant.",
    "language.short_letters": "Scores are the model's: raise min_score, or drop short rows by the rule set lengths.",
    "ingest.tree_paths": "Trees of messages are no layout: write the paths that you want as lists of messages.",
    "ingest.max_record_mb": "It is a constant: records of more than 256 MiB are quarantined.",
    "ingest.max_expansion": "It is a constant (300, and 64 MiB always): decompress a file that grows further yourself.",
    "ingest.max_page_mb": "It is a constant: pages of more than 8 MiB are quarantined.",
    "ingest.max_page_tags": "It is a constant: pages of more than 100,000 start tags are quarantined.",
    "ingest.max_page_depth": "It is a constant: pages of more than 512 elements inside of one another are quarantined.",
    "filter.contamination.mode": "Contamination weighs the words of each text of an item: set max_match_ratio.",
    "filter.contamination.ngram_words": "Contamination has n-grams of 5 words: set max_match_ratio or min_rare_words.",
    "filter.contamination.short_ngram_words": "Contamination has n-grams of 5 words: set min_rare_words.",
    "filter.contamination.max_prompt_overlap_ratio": "Set contamination.max_match_ratio, and eval_fields for prompts.",
    "filter.contamination.max_answer_overlap_ratio": "Set contamination.max_match_ratio, and eval_fields for answers.",
    "filter.contamination.max_shared_items": "Set contamination.min_rare_words to fewer words that must match.",
    "filter.gopher_repetition.duplicates": "Each copy after the first is a duplicate, as in datatrove.",
    "filter.fineweb.duplicates": "Each copy after the first is a duplicate, as in datatrove.",
    "dedup.save_signatures": "Make them yourself of the kept rows: datasketch.MinHash(112, seed=1, scheme='affine32').",
    "language.lang_map": "lang holds the model's labels: list these in languages and in the models of perplexity.",
    "language.segment_chars": "Split rows into paragraphs before the stage: each has a label of its own then.",
    "language.sample_bytes": "Rows are read whole.",
    "classify.sample_bytes": "Rows are read whole.",
    "filter.contamination.action": "Rows that hold an item are dropped: what is left may still tell its answer.",
    "filter.c4.javascript": 'Such lines never stay; lines = "count" cuts none.',
    "filter.c4.policy": 'Such lines never stay; lines = "count" cuts none.',
    "filter.words.max_listed_word_ratio": "Set words.max_listed_words.",
    "dedup.min_alarm_rows": "An alarm needs 20 rows; max_loss = 1 turns alarms about losses off.",
    "dedup_urls.min_alarm_rows": "An alarm needs 20 rows; max_loss = 1 turns alarms about losses off.",
    "dedup_semantic.min_alarm_rows": "An alarm needs 20 rows; max_loss = 1 turns alarms about losses off.",
}
"""By a removed stage, or an option of a stage (with dots, also in nested sections): what to use instead."""


def sentence(stage: str, key: str = "") -> str:
    """What to use instead of a stage or of one of its options; empty where it was never there."""
    return REMOVED.get((f"{stage}.{key}" if key else stage).replace("-", "_"), "")
