"""From rows to packed token rows: chat templates, labels, bin packing, formats."""

import sys

from datakit import StagePackage

sys.modules[__name__].__class__ = StagePackage  # `datakit.pack(table)` runs the stage
