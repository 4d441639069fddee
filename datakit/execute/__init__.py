"""Engines that run work units: threads and processes of this machine."""
