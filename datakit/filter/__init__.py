"""One technique, one file: the language stage and the quality rule sets."""

import sys

from datakit import StagePackage

sys.modules[__name__].__class__ = StagePackage  # `datakit.filter(table)` runs the stage
