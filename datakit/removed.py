"""What earlier versions had and this one has not, with what to use instead: the table `removed.toml`.

A recipe, a flag or an argument that names one of these ends with its sentence. Standard library only.
"""

from functools import cache
from pathlib import Path


@cache
def sentences() -> dict[str, str]:
    """What to use instead of a removed stage, an option of a stage (with dots), or an option of the trainer."""
    import tomllib  # asked for after a mistake only

    return dict(tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")))


def sentence(stage: str, key: str = "") -> str:
    """What to use instead of a stage or of one of its options; empty where it was never there."""
    return sentences().get((f"{stage}.{key}" if key else stage).replace("-", "_"), "")
