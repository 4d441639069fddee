"""An OpenAI-compatible server for trained models, and a page to chat on."""

from collections.abc import Sequence
from importlib.util import find_spec

from datakit.errors import MissingExtraError


def main(argv: Sequence[str], prog: str = "python -m train.serve") -> int:
    """Run the server; returns the exit code.

    Raises:
        MissingExtraError: the packages of the extra `serve` are not installed.
    """
    if missing := [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]:
        raise MissingExtraError(f"train.serve needs {' and '.join(missing)}: pip install 'datakit[serve]'")
    from train.serve import server

    return server.main(argv, prog)
