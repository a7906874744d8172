"""Proof that a conversion kept the numbers: whole models compared by running them, and every rewrite by itself.

`verify` compares two models, `verify_sites` the rewrites of a plan, `compare_runtimes` one model in two runtimes.
"""

from __future__ import annotations

from reducelower.numerics.tolerance import DEFAULT_TOLERANCES, Tolerance
from reducelower.verification.departure import Departure, RuntimeComparison, compare_runtimes
from reducelower.verification.inputs import free_sizes
from reducelower.verification.result import OutputComparison, SiteVerification, Verification
from reducelower.verification.runtimes import RUNTIMES
from reducelower.verification.sites import verify_sites
from reducelower.verification.testdata import TestDataSet, load_array, load_test_data
from reducelower.verification.whole import combined, verify

__all__ = [
    "DEFAULT_TOLERANCES",
    "RUNTIMES",
    "Departure",
    "OutputComparison",
    "RuntimeComparison",
    "SiteVerification",
    "TestDataSet",
    "Tolerance",
    "Verification",
    "combined",
    "compare_runtimes",
    "free_sizes",
    "load_array",
    "load_test_data",
    "verify",
    "verify_sites",
]
