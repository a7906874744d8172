"""Exact arithmetic, and rules held against it: another judge of them than the package's own."""
