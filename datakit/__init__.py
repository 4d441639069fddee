"""datakit: raw text, conversations and preference pairs in; packed, verified, versioned training data out."""

__version__ = "0.1.0"
