"""The fixtures of the command line's tests."""

from tests.cli.conftest import datakit, project, workshop

__all__ = ["datakit", "project", "workshop"]
