"""`python -m datakit` and the command `datakit`."""

import atexit
import gc

from datakit.cli.main import main

atexit.register(gc.freeze)  # lest the interpreter look for cycles in all modules, once more, only to end

if __name__ == "__main__":
    main()
