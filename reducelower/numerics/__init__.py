"""Exact truth, distances in ULP and tolerances: one copy for rules, verification and conformance."""
