"""Proof that two models give the same numbers: what differs between them by itself, then both whole.

`verify` compares two models, or one in two runtimes, `verify_regions` what differs between them.
"""

from __future__ import annotations

from reducelower.numerics.tolerance import DEFAULT_TOLERANCES, Tolerance
from reducelower.verification.checking.sites import Regions, verify_regions
from reducelower.verification.findings import OutputComparison, SiteVerification
from reducelower.verification.inputs.declared import free_sizes
from reducelower.verification.inputs.testdata import (
    TestDataSet,
    check_given,
    load_arrays,
    load_test_data,
    load_value,
)
from reducelower.verification.result import Departure, Verdict, Verification
from reducelower.verification.running.runtimes import RUNTIMES
from reducelower.verification.whole.verify import verify

__all__ = [
    "DEFAULT_TOLERANCES",
    "RUNTIMES",
    "Departure",
    "OutputComparison",
    "Regions",
    "SiteVerification",
    "TestDataSet",
    "Tolerance",
    "Verdict",
    "Verification",
    "check_given",
    "free_sizes",
    "load_arrays",
    "load_test_data",
    "load_value",
    "verify",
    "verify_regions",
]
