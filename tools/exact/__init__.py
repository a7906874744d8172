"""Exact arithmetic, and tests of rules against it, independent of the package's own verification."""
