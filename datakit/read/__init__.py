"""Files of every format into record batches of one row kind, and into quarantine what cannot be read."""
