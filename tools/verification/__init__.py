"""Measure how reliable verdicts are: planted faults, changed cases, right conversions."""
