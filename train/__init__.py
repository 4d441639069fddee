"""A lean streaming trainer for data packed by datakit."""

import sys
from importlib.util import find_spec
from pathlib import Path

from datakit.errors import MissingExtraError

_missing = [name for name in ("torch", "safetensors") if find_spec(name) is None]
if _missing:
    _message = f"training needs {' and '.join(_missing)}: pip install 'datakit[train]'"
    if sys.argv[:1] == ["-m"] or (sys.argv and Path(sys.argv[0]).stem == "datakit-train"):  # a command: no traceback
        sys.exit(f"error: {_message}")
    raise MissingExtraError(_message)
