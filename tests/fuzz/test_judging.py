"""The judge finds what is planted, and the shrinker keeps no more than it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

from reducelower import ConversionError
from reducelower.errors import Refusal
from tools.fuzz.case import Action, Case
from tools.fuzz.comparing import difference
from tools.fuzz.judging import judge
from tools.fuzz.shrinking import shrink

FEEDS = {"x": np.array([1.0, -2.0, 3.0], np.float32)}


class Planted(Action):
    """A conversion that does what it is told."""

    def __new__(cls, change: Callable[[ModelProto], Any]) -> Planted:
        made = super().__new__(cls)
        object.__setattr__(made, "change", change)
        return made

    def __init__(self, change: Callable[[ModelProto], Any]) -> None:
        super().__init__("convert", 13)

    def apply(self, model: ModelProto) -> ModelProto:
        copy = ModelProto.FromString(model.SerializeToString())
        return self.change(copy) or copy  # type: ignore[attr-defined]


def model(body: str) -> ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 13]> g (float[3] x) => (float[3] y) {{ {body} }}'
    )


def case(change: Callable[[ModelProto], Any], body: str = "a = Abs(x) y = Neg(a)") -> Case:
    return Case("planted", model(body), FEEDS, Planted(change))


def drop_last(copy: ModelProto) -> None:
    del copy.graph.node[-1]


def change_sign(copy: ModelProto) -> None:
    for node in copy.graph.node:
        if node.op_type == "Neg":
            node.op_type = "Identity"


def refuse(copy: ModelProto) -> None:
    raise ConversionError([Refusal("graph", "n", "Neg", "it may not")])


def stumble(copy: ModelProto) -> None:
    raise KeyError("x")


def grow(copy: ModelProto) -> None:
    copy.graph.name += "_again"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda copy: None, "equal"),
        (change_sign, "wrong"),
        (drop_last, "invalid"),
        (refuse, "refused"),
        (stumble, "crash"),
        (grow, "not idempotent"),
    ],
)
def test_what_is_planted_is_found(change: Callable[[ModelProto], Any], kind: str) -> None:
    assert judge(case(change)).kind == kind


def test_a_conversion_that_changes_its_input_is_found() -> None:
    held = case(lambda copy: None)

    class Meddling(Planted):
        def apply(self, model: ModelProto) -> ModelProto:
            model.graph.name = "other"
            return ModelProto.FromString(model.SerializeToString())

    assert judge(replace(held, action=Meddling(lambda copy: None))).kind == "changed input"


def test_a_case_is_shrunk_to_the_node_that_is_wrong() -> None:
    long = case(change_sign, "a = Abs(x) b = Add(a, a) c = Relu(b) d = Neg(c) e = Abs(d) f = Add(e, d) y = Exp(f)")
    small = shrink(long)
    assert judge(small).kind == "wrong"
    assert len(small.model.graph.node) < 4
    assert "Neg" in [node.op_type for node in small.model.graph.node]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("wanted", "got", "same"),
    [
        ([1.0, NAN, INF], [1.00001, NAN, INF], True),
        ([1.0], [1.01], False),
        ([INF], [-INF], False),
        ([INF], [3e38], False),
        ([NAN], [0.0], False),
        ([1e-9, 100.0], [2e-9, 100.0], True),
        ([1e-9], [2e-9], False),
        ([[1.0, 2.0]], [1.0, 2.0], False),
    ],
)
def test_numbers_are_the_same_as_far_as_rounding_goes(wanted: list[Any], got: list[Any], same: bool) -> None:
    assert (not difference(np.array(wanted, np.float32), np.array(got, np.float32))) is same


def test_what_comes_from_numbers_around_1_is_the_same_up_to_their_last_digits() -> None:
    wanted, got, other = (np.array([number], np.float32) for number in (0.0, 2.0**-22, 2.0**-20))
    assert difference(wanted, got)
    assert not difference(wanted, got, near_zero=True)
    assert difference(wanted, other, near_zero=True)


def test_whole_numbers_types_and_sequences_are_compared_exactly() -> None:
    assert difference(np.array([2**53]), np.array([2**53 + 1]))
    assert difference(np.array([1]), np.array([1], np.int32))
    assert difference([np.array([1.0])], [np.array([1.0]), np.array([1.0])])
    assert not difference([np.array(["a"], object)], [np.array(["a"])])
