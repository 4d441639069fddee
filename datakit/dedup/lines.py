"""Duplicate lines or paragraphs over the whole data set (CCNet: Wenzek et al. 2020): each stays where it stood first.

CCNet compares hashes of lines in lower case without punctuation and accents, with 0 for every digit. Ours are compared
by their words (`units`): accents count, and so do digits unless `digits = "zero"`. CCNet looks within chunks of its
data; here a line stays in the first row of all that has it and stays itself, so that nothing vanishes altogether.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from datakit.dedup.levels import LinesConfig
from datakit.dedup.repeating import Repeating
from datakit.dedup.units import Unit


@dataclass(frozen=True)
class DedupLines(Repeating):
    """Cuts duplicate lines or paragraphs; rows of which too little is left are dropped as `duplicate_lines`."""

    config: LinesConfig = field(default_factory=LinesConfig)
    name: ClassVar[str] = "dedup_lines"
    reason: ClassVar[str] = "duplicate_lines"

    @property
    def unit(self) -> Unit:
        """Line or paragraph."""
        return self.config.unit

    @property
    def span(self) -> int:
        """Each is compared alone."""
        return 1
