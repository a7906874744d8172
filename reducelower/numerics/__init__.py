"""Exact expected values, ULP distances and tolerances, for rules, verification and conformance alike."""
