"""`python -m datakit` and the command `datakit`."""

from datakit.cli.main import main

if __name__ == "__main__":
    main()
