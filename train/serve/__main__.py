"""`python -m train.serve`."""

from train import flags
from train.serve import main

flags.started(main, __name__)
