"""Measuring how far verdicts can be trusted: planted faults, changed cases, right conversions."""
