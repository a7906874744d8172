"""The runtimes that reducelower can run; one more is a function and a row in the table of one of these files."""

from reducelower.conformance.runtimes import converted, direct

__all__ = ["RUNTIMES"]

RUNTIMES = dict(sorted((name, file.__file__) for file in (converted, direct) for name in file.RUNTIMES))
"""By name, the file that has it."""
