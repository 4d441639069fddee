"""Packed rows: how they are read, ordered and made into batches."""
