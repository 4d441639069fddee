"""Exact and near duplicates: who stays, who is dropped, and by how much they resemble each other."""

import sys

from datakit import StagePackage

sys.modules[__name__].__class__ = StagePackage  # `datakit.dedup(table)` runs the stage
