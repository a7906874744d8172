"""Forms with one thing changed are raised where they still mean the operator, and compute what they did."""

from __future__ import annotations

from collections import Counter

from tools.perturbed import case, wrong

SEEDS = range(314, 326)


def test_a_form_with_one_thing_changed_computes_what_it_did() -> None:
    raised = Counter[str]()
    for seed in SEEDS:
        made = case(seed)
        if made is not None:
            model, told, feeds = made
            says, kinds = wrong(model, feeds)
            assert not says, f"seed {seed}: {says}; {told}"
            raised += kinds
    assert len(raised) > 3, "hardly anything was raised, so that nothing was tried"
