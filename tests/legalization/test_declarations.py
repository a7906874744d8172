"""Types and ranks that the user declares of values behind operators nobody knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from onnx import ModelProto, checker

import reducelower
from reducelower import ConversionError
from tests.models import model

OPERATORS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceSumSquare")


def behind_unknown(op_type: str) -> ModelProto:
    """A reduction of data of unknown type and rank over axes computed at run time."""
    nodes = f"h = my.Foo (x)  y = {op_type} <keepdims = 0> (h, a)  z = my.Bar (y)"
    return model(f"(float[2, 3] x, int64[K] a) => (float[Q] z) {{ {nodes} }}", imports='"my": 1')


@pytest.mark.parametrize("target", [17, 13, 11, 9])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_following_the_hints_leads_to_a_model(op_type: str, target: int) -> None:
    given = behind_unknown(op_type)
    declared: dict[str, dict[str, object]] = {"element_types": {}, "ranks": {}}
    for _ in range(3):
        try:
            converted = reducelower.convert_version(given, target, **declared)  # type: ignore[arg-type]
        except ConversionError as error:
            asked = re.findall(r"--(?:type (\S+)=TYPE|rank (\S+)=N)", str(error))
            assert asked, str(error)
            for of_type, of_rank in asked:
                assert (of_type or of_rank) == "h"
                declared["element_types" if of_type else "ranks"]["h"] = "float32" if of_type else 3
        else:
            checker.check_model(converted, full_check=True)
            return
    pytest.fail(f"the hints lead in a circle: {declared}")


@pytest.mark.parametrize("target", [17, 13])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_a_declared_rank_breaks_nothing_that_works_without(op_type: str, target: int) -> None:
    given = behind_unknown(op_type)
    for element_types in ({}, {"h": "float32"}):
        for rules in ("spec", "stable"):
            try:
                reducelower.convert_version(given, target, element_types=element_types, rules=rules)
            except ConversionError:
                continue
            reducelower.convert_version(given, target, element_types=element_types, ranks={"h": 3}, rules=rules)


@pytest.mark.parametrize("declared", [{"ranks": {"hh": 3}}, {"element_types": {"hh": "float32"}}])
def test_what_is_declared_of_no_value_is_refused(declared: dict[str, dict[str, object]]) -> None:
    with pytest.raises(ConversionError, match="no value of the model is named 'hh'"):
        reducelower.convert_version(behind_unknown("ReduceMax"), 13, **declared)  # type: ignore[arg-type]


KNOWN = model(
    "(float[2, 3] x, int64[K] a) => (float[P, Q] y) <float[3] w = {1, 2, 3}> { h = Add (x, w)  y = ReduceMax (h, a) }"
)

# What is declared, and what the refusal says of it: of what is stated, an initializer, and what follows from both.
CONTRARY: list[tuple[dict[str, dict[str, object]], str]] = [
    ({"ranks": {"x": 3}}, "the rank of 'x' is 2, and 3 is declared of it"),
    ({"ranks": {"w": 2}}, "the rank of 'w' is 1, and 2 is declared of it"),
    ({"ranks": {"h": 0}}, "the rank of 'h' is 2, and 0 is declared of it"),
    ({"element_types": {"y": "string"}}, "the element type of 'y' is float, and string is declared of it"),
    ({"element_types": {"h": "float16"}}, "the element type of 'h' is float, and float16 is declared of it"),
]


@pytest.mark.parametrize(("declared", "said"), CONTRARY)
@pytest.mark.parametrize(
    "rewrite",
    [reducelower.expand, reducelower.raise_reductions, partial(reducelower.convert_version, target_version=13)],
)
def test_what_the_model_says_otherwise_is_refused(
    rewrite: Callable[..., object], declared: dict[str, dict[str, object]], said: str
) -> None:
    with pytest.raises(ConversionError, match=said):
        rewrite(KNOWN, **declared)


def test_what_the_model_says_too_may_be_declared() -> None:
    declared: dict[str, dict[str, object]] = {
        "ranks": {"x": 2, "h": 2, "w": 1},
        "element_types": {"x": "float32", "h": "float"},
    }
    reducelower.convert_version(KNOWN, 13, **declared)  # type: ignore[arg-type]


def test_a_name_of_several_values_may_be_declared_while_one_of_them_leaves_it_open() -> None:
    given = model(
        """(bool c, float[2, 3] x) => (float[P, Q] y) {
            y = If (c) <then_branch = t () => (float[P, Q] p) { v = Abs (x) p = ReduceL1 (v) },
                        else_branch = e () => (float[P, Q] q) { v = my.Foo (x) q = ReduceL1 (v) }> }""",
        imports='"my": 1',
    )
    reducelower.convert_version(given, 13, ranks={"v": 3})
    with pytest.raises(ConversionError, match="the rank of 'p' is 2"):
        reducelower.convert_version(given, 13, ranks={"p": 3})
