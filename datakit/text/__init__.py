"""Text: the properties of characters, the normal form and words, which dedup and filter share."""
