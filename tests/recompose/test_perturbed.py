"""Forms with one thing changed are raised where they still mean the operator, and compute what they did."""

from __future__ import annotations

from collections import Counter

from reducelower.options import Settings
from reducelower.recompose import raise_with_plan
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


def test_what_is_remembered_of_other_places_changes_nothing() -> None:
    made = [case(seed) for seed in range(4000, 4012)]
    models = [each[0] for each in made if each is not None]
    remembered = [raise_with_plan(model) for model in models]
    for model, with_memory in zip(models, remembered, strict=True):
        alone = raise_with_plan(model, Settings(memo=False))
        assert alone.model.SerializeToString() == with_memory.model.SerializeToString()
        assert alone.plan == with_memory.plan
    assert sum(len(each.plan.sites) for each in remembered) > 10
