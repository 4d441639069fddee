"""`python -m datakit` and the command `datakit`."""

import atexit
import gc
import os

# Each before the imports that it is for, a third of a small run's start: no threads for matrices, of which there are
# none here, and no search for cycles among modules, of which there are many, at the end neither.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(50_000)
atexit.register(gc.freeze)

from datakit.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
