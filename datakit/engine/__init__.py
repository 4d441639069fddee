"""Runs stages: keys and lineage, work units that survive an interruption, ledgers; the manifest is written last."""
