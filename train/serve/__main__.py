"""`python -m train.serve`."""

import sys

from train import flags
from train.serve import main

if __name__ == "__main__":
    sys.exit(flags.guarded(main))
