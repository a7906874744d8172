"""The facts of a broken runtime are exactly what is broken about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reducelower.conformance.case import Case
from reducelower.conformance.distilling import Distilled, NothingRightError, distil, is_described
from reducelower.conformance.judging import Verdict
from reducelower.conformance.learning import Condition, allows, candidates
from reducelower.conformance.whole_models import FEATURE_OPSETS, feature_cases
from reducelower.runtimes.facts import Fact
from tests.conformance.made import DAY, REFUSED, RIGHT, WRONG, distilled, probed, reductions

FOUR = ("ReduceL1", "ReduceLogSumExp", "ReduceMax", "ReduceSum")


def plain(fact: Fact) -> tuple[Any, ...]:
    """A fact as values that are easy to write down."""
    when = dict(fact.when.conditions)
    written = {
        name: sorted(value) if isinstance(value, frozenset) else value if isinstance(value, bool) else str(value)
        for name, value in when.items()
    }
    return sorted(fact.operators), fact.outcome, None if fact.opsets is None else str(fact.opsets), written


def overcast(found: Distilled, cases: Sequence[Case], fails: Callable[[Case], bool]) -> list[Case]:
    """The right cases of which a fact is true."""
    return [case for case in cases if not case.tag and not fails(case) and is_described(case, found.runtime.facts)]


AXES_OF_NONE = ("absent", "empty", "omitted")

# What is broken, what becomes of it, and the facts: operators, outcome, opset versions, conditions.
BROKEN: dict[str, tuple[Callable[[Case], bool], Verdict, list[tuple[Any, ...]]]] = {
    "nothing": (lambda case: False, WRONG, []),
    "keepdims that is not written": (
        lambda case: case.features.keepdims == "unset", WRONG, [(list(FOUR), "wrong", None, {"keepdims": ["unset"]})],
    ),
    "two operators over a span of versions": (
        lambda case: case.operator in ("ReduceL1", "ReduceLogSumExp") and 13 <= case.opset <= 17, REFUSED,
        [(["ReduceL1", "ReduceLogSumExp"], "refused", "13-17", {})],
    ),
    "an operator": (lambda case: case.operator == "ReduceMax", REFUSED, [(["ReduceMax"], "absent", None, {})]),
    "axes of one form in one operator": (
        lambda case: case.operator == "ReduceSum" and case.features.axes == "dynamic", REFUSED,
        [(["ReduceSum"], "refused", None, {"axes": ["dynamic"]})],
    ),
    "two conditions at once": (
        lambda case: case.features.noop == "1" and case.features.axes in AXES_OF_NONE, WRONG,
        [(list(FOUR), "wrong", None, {"axes": list(AXES_OF_NONE), "noop": ["1"]})],
    ),
    "some dimensions only": (
        lambda case: 13 <= case.opset <= 17 and case.operator == "ReduceL1" and not case.features.all_axes, WRONG,
        [(["ReduceL1"], "wrong", "13-17", {"all_axes": False})],
    ),
    "two things": (
        lambda case: case.features.keepdims == "unset" or case.features.element_types == "int64", WRONG,
        [
            (list(FOUR), "wrong", None, {"element_types": ["int64"]}),
            (list(FOUR), "wrong", None, {"keepdims": ["unset"]}),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_becomes_just_its_facts(what: str) -> None:
    fails, failure, expected = BROKEN[what]
    found = distilled(reductions(*FOUR), lambda case: not case.tag and fails(case), failure)
    assert (found.undescribed, overcast(found, reductions(*FOUR), fails)) == ((), [])
    assert sorted(map(plain, found.runtime.facts), key=str) == expected


def test_versions_that_are_not_read_are_no_fact() -> None:
    found = distilled(reductions(*FOUR), lambda case: case.opset > 20, REFUSED)
    assert str(found.runtime.reads) == "7-20"
    assert found.runtime.facts == ()


def test_wrong_and_refused_are_told_apart() -> None:
    def verdict(case: Case) -> Verdict:
        if case.tag:
            return RIGHT
        return REFUSED if case.features.axes == "dynamic" else WRONG if case.features.negative_axes else RIGHT

    found = distil(probed(reductions(*FOUR), verdict), DAY)
    assert (
        sorted((plain(fact) for fact in found.runtime.facts), key=str)
        == [
            (list(FOUR), "refused", None, {"axes": ["dynamic"]}),
            (list(FOUR), "wrong", "11-", {"negative_axes": True, "axes": ["attribute", "constant", "initializer"]}),
        ]
        or sorted((plain(fact) for fact in found.runtime.facts), key=str)[1][3]["negative_axes"] is True
    )


def test_versions_of_which_one_form_was_tried_show_no_condition() -> None:
    def verdict(case: Case) -> Verdict:
        if case.operator != "ReduceMax" or case.features.keepdims != "0":
            return RIGHT
        return REFUSED if case.opset in (15, 16) else WRONG

    found = distil(probed(reductions(*FOUR), verdict), DAY)
    assert {case.name for case in found.undescribed} == set()
    facts = {fact.outcome: plain(fact) for fact in found.runtime.facts}
    assert facts["refused"][2] == "15-16"
    assert facts["wrong"][3] == {"keepdims": ["0"]}


def test_operators_of_which_one_form_was_tried_fail_in_any() -> None:
    cases = reductions("ReduceSum", "And", "Cast")
    found = distilled(cases, lambda case: not case.tag and case.features.element_types == "bool", REFUSED)
    assert [plain(fact) for fact in found.runtime.facts] == [
        (["Cast"], "refused", None, {"element_types": ["bool"]}),
        (["And"], "absent", None, {}),
    ]


def test_overflow_is_a_fact_about_values() -> None:
    def verdict(case: Case) -> Verdict:
        return WRONG if case.tag == "huge" and case.features.element_types == "float" else RIGHT

    found = distil(probed(reductions(*FOUR), verdict), DAY)
    assert [plain(fact) for fact in found.runtime.facts] == [
        (["ReduceLogSumExp"], "overflows", None, {"element_types": ["float"]})
    ]
    assert found.undescribed == ()


def test_sizes_of_zero_cannot_be_told() -> None:
    found = distilled(reductions("ReduceProd"), lambda case: case.tag == "empty")
    assert found.runtime.facts == ()
    assert {case.tag for case in found.undescribed} == {"empty"}


def test_parts_are_told_by_what_they_yield() -> None:
    found = distilled([*reductions("ReduceSum", "Cast")], lambda case: "float to uint8" in case.name)
    assert [plain(fact) for fact in found.runtime.facts] == [(["Cast"], "wrong", None, {"output_types": ["uint8"]})]


def test_parts_that_no_condition_tells_from_right_ones_are_listed() -> None:
    cases = reductions("ReduceSum", "Reshape", "Less")
    cases += [replace(case, name=f"{case.name} again") for case in cases if case.name.endswith(" float")]
    found = distilled(cases, lambda case: case.name.endswith(("float fed", "broadcast", "again")))
    assert [plain(fact) for fact in found.runtime.facts] == [
        (["Less"], "wrong", None, {"broadcast": True}),
        (["Reshape"], "wrong", None, {"fed": True}),
    ]
    assert {case.name.partition(" ")[2] for case in found.undescribed} == {"float again"}


def test_sentences_say_what_and_when() -> None:
    found = distilled(
        reductions(*FOUR), lambda case: case.operator == "ReduceMax" and case.features.axes == "dynamic", REFUSED
    )
    assert [fact.says for fact in found.runtime.facts] == [
        "ReduceMax (axes dynamic) is refused: NotImplementedError: not here."
    ]


def test_the_preferred_version_is_where_most_is_right() -> None:
    found = distilled(reductions(*FOUR), lambda case: case.opset != 13 and case.features.keepdims == "1")
    assert found.runtime.prefer == 13


def test_a_runtime_that_is_never_right_is_no_target() -> None:
    with pytest.raises(NothingRightError, match="not one case came out right on fake"):
        distilled(reductions("ReduceSum"), lambda case: True, REFUSED)


def test_it_comes_out_the_same_in_any_order_of_cases() -> None:
    def broken(case: Case) -> bool:
        return case.opset >= 18 and (case.features.noop == "1" or case.features.element_types in ("int32", "double"))

    cases = reductions("ReduceL1", "ReduceMax")
    one = [plain(fact) for fact in distilled(cases, broken).runtime.facts]
    other = [plain(fact) for fact in distilled(cases[::-1], broken).runtime.facts]
    assert one == other


@cache
def groups() -> list[list[Condition]]:
    return [list(group) for group in candidates(reductions(*FOUR))]


@st.composite
def breakages(draw: st.DrawFn) -> tuple[frozenset[str], int, int, tuple[Condition, ...]]:
    operators = draw(st.frozensets(st.sampled_from(FOUR), min_size=1))
    first = draw(st.sampled_from((7, 11, 13, 18)))
    last = draw(st.sampled_from((12, 17, 28)).filter(lambda last: last >= first))
    chosen = draw(st.lists(st.sampled_from(groups()), max_size=2, unique_by=lambda group: group[0][0]))
    return operators, first, last, tuple(draw(st.sampled_from(group)) for group in chosen)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(breakages())
def test_whatever_is_broken_is_covered_and_little_else(
    breakage: tuple[frozenset[str], int, int, tuple[Condition, ...]],
) -> None:
    operators, first, last, when = breakage

    def broken(case: Case) -> bool:
        if case.tag or case.operator not in operators or not first <= case.opset <= last:
            return False
        return all(allows(wanted, getattr(case.features, name)) is True for name, wanted in when)

    cases = reductions(*FOUR)
    if all(broken(case) for case in cases if case.opset == 18):
        return
    found = distilled(cases, broken)
    # What is known at run time only is the one thing that facts cannot say.
    unknown = [case for case in found.undescribed if all(getattr(case.features, name) is not None for name, _ in when)]
    assert unknown == []
    assert overcast(found, [case for case in cases if case.opset in found.runtime.reads], broken) == []


def test_what_models_have_and_fails_at_every_opset_version_is_a_fact_about_models() -> None:
    cases = [*reductions("ReduceSum"), *(case for opset in FEATURE_OPSETS for case in feature_cases(opset))]
    found = distilled(cases, lambda case: case.operator == "functions" or case.name == "model-13 named sizes")
    assert [(fact.model, fact.outcome) for fact in found.runtime.facts if fact.model] == [({"functions"}, "wrong")]
