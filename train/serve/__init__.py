"""An OpenAI-compatible server for trained models, and a page to chat on."""

from collections.abc import Sequence

from datakit.errors import MissingExtraError


def main(argv: Sequence[str], prog: str = "python -m train.serve") -> int:
    """Run the server; returns the exit code.

    Raises:
        MissingExtraError: the packages of the extra `serve` are not installed.
    """
    try:
        from train.serve import server
    except ModuleNotFoundError as e:
        if e.name is None or e.name.startswith(("train", "datakit")):
            raise
        raise MissingExtraError(f"train.serve needs {e.name}: pip install 'datakit[serve]'") from None
    return server.main(argv, prog)
