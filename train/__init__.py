"""A lean streaming trainer for data packed by datakit."""

import os
import signal
import sys

_alone = sys.argv[:1] == ["-m"]  # python -m train.sft
_command = _alone or os.path.basename((sys.argv or [""])[0]).startswith("datakit-train")
if _command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # until flags.built
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # no traceback from within an import

from importlib import import_module  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from typing import Any  # noqa: E402

from datakit.config import instead_of  # noqa: E402
from datakit.errors import MissingExtraError  # noqa: E402

if _missing := [name for name in ("torch", "safetensors") if find_spec(name) is None]:
    _message = f"training needs {' and '.join(_missing)}: pip install 'datakit[train]'"
    if _command:
        sys.exit(f"error: {_message}")
    raise MissingExtraError(_message)
if _alone and (_name := sys.orig_argv[-len(sys.argv)]).startswith("train."):
    from train import flags
    from train.__main__ import COMMANDS, check

    if _name[6:] in COMMANDS and (_code := flags.guarded(lambda argv: check(_name[6:], argv, f"python -m {_name}"))):
        sys.exit(_code)
    if find_spec(_name) is None and (_instead := instead_of("train", _name[6:])):
        sys.exit(f"error: {_name} is gone. {_instead}")

_PUBLIC = {
    "Trainer": "start", "PretrainConfig": "pretrain", "SFTConfig": "sft", "DPOConfig": "dpo",
    "DistillConfig": "distill", "GrpoConfig": "grpo", "GrpoTrainer": "grpo", "CompareConfig": "compare",
    "compare_arms": "compare",
}  # fmt: skip
"""What `from train import ...` gives, and its module, which is imported then."""


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'train' has no attribute {name!r}")
    return getattr(import_module(f"train.{_PUBLIC[name]}"), name)
