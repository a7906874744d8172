"""A sample of the run of `mutations`: every kind of fault, planted in a small model where it has a place."""

from __future__ import annotations

import pytest

from reducelower.verification import verify
from tools.verification.faults import FAULTS
from tools.verification.mutations import SMALL, difference, mutants


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_changes_a_value_is_not_called_equivalent(fault: str) -> None:
    (mutant,) = mutants(7, 1, tuple(SMALL), (fault,))
    if verify(mutant.before, mutant.after).equivalent:
        assert difference(mutant) == "", str(mutant)
