"""One technique, one file: the language stage and the quality rule sets."""
