"""A lean streaming trainer for what datakit packs."""

import sys
from importlib.util import find_spec

from datakit.errors import MissingExtraError

_missing = [name for name in ("torch", "safetensors") if find_spec(name) is None]
if _missing:
    _said = f"training needs {' and '.join(_missing)}, which datakit alone does not bring: pip install 'datakit[train]'"
    if sys.argv[:1] == ["-m"]:  # `python -m train...` is looking for its module: a command has no use for a traceback
        sys.exit(f"error: {_said}")
    raise MissingExtraError(_said)
