"""`python -m train.serve`."""

import sys

from train.engine import flags
from train.serve import main

if __name__ == "__main__":
    sys.exit(flags.guarded(main))
