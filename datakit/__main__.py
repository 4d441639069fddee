"""`python -m datakit` and the command `datakit`."""

import atexit
import ctypes
import gc
import os

# Each before the imports that it is for, a third of a small run's start: no threads for matrices, of which there are
# none here, and no search for cycles among modules, of which there are many, at the end neither.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(50_000)
atexit.register(gc.freeze)

# The next shard needs as much memory as the one before. What Arrow and C's library free (glibc's, which alone has
# `mallopt`) goes back to the system after seconds, not at once: fresh pages are up to a fifth of the time of a stage.
KEPT_BYTES, MMAP_BYTES = 128 << 20, 32 << 20
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")  # milliseconds
for option, name, size in ((-1, "MALLOC_TRIM_THRESHOLD_", KEPT_BYTES), (-3, "MALLOC_MMAP_THRESHOLD_", MMAP_BYTES)):
    if name not in os.environ and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(option, size)
        os.environ[name] = str(size)  # for worker processes, which glibc reads when they start

from datakit.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
