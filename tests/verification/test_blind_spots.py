"""What once went unseen: the sign of a zero that something divides by, constants beyond the sizes that are fed,
bounds that only some sizes or surroundings let through.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from reducelower import convert_version
from reducelower.verification import verify
from reducelower.verification.feeding.bases import Accepts
from reducelower.verification.feeding.filling import Case
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.roles import Role
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.inputs.declared import InputSpec


def fed(specs: list[InputSpec], limits: Limits, accepts: Accepts) -> list[Case]:
    return list(Sets(specs, limits)(accepts, accepts))


def test_the_first_sizes_that_fit_get_every_kind_of_values() -> None:
    specs = [InputSpec(name, TensorProto.FLOAT, (rows, 4)) for name, rows in (("a", "A"), ("b", "B"))]
    labels = [case.label for case in fed(specs, Limits(), lambda feeds: len(feeds["a"]) == len(feeds["b"]) > 0)]
    assert {label.split(" values")[0] for label in labels} >= {"mixed", "largest", "NaN", "infinity", "small"}


def test_sizes_that_the_region_holds_are_tried_where_no_other_fits() -> None:
    specs = [InputSpec("a", TensorProto.INT64, ("N",))]
    cases = fed(specs, Limits(sizes=frozenset({-1, 11})), lambda feeds: feeds["a"].size % 11 == 0)
    assert any(case.feeds["a"].size == 11 for case in cases)


def test_no_input_of_a_region_is_made_of_more_elements_than_memory_holds() -> None:
    specs = [InputSpec("a", TensorProto.FLOAT, (4_000_000_000,)), InputSpec("b", TensorProto.FLOAT, ("N",))]
    assert all(case.feeds["a"].size < 4_000_000 for case in fed(specs, Limits(), lambda feeds: True))


MODELS = Path(__file__).parents[1] / "data" / "models"


def bounded_above(node: NodeProto, graph: onnx.GraphProto) -> None:
    (name,), at = node.output, list(graph.node).index(node) + 1
    node.output[0] = f"{name}/free"
    limit = helper.make_node("Constant", [], [f"{name}/limit"], value=helper.make_tensor("", 1, [], [1000.0]))
    rest = list(graph.node)[at:]
    del graph.node[at:]
    graph.node.extend([limit, helper.make_node("Min", [f"{name}/free", f"{name}/limit"], [name]), *rest])


def averaging(node: NodeProto, graph: onnx.GraphProto) -> None:
    node.op_type = "ReduceMean"


@pytest.mark.parametrize(
    ("name", "target", "value", "change"),
    [
        ("skl_knnc_17", 9, "Sq_Y0", bounded_above),
        ("skl_knnc_17", 11, "bprob_reduced02", averaging),
        ("skl_bgmm_17", 13, "Ge_Y02", bounded_above),
        ("torch_lstm_ts_11", 11, "/Transpose_output_0", bounded_above),
    ],
    ids=["above a root", "rows of a table that few indices reach", "rows that have to fit", "a count that has to fit"],
)
def test_what_surroundings_let_through_is_seen(
    name: str, target: int, value: str, change: Callable[[NodeProto, onnx.GraphProto], None]
) -> None:
    source = onnx.load(MODELS / f"{name}.onnx")
    wrong = ModelProto()
    wrong.CopyFrom(convert_version(source, target))
    change(next(node for node in wrong.graph.node if value in node.output), wrong.graph)
    assert verify(source, wrong).verdict == "different"


def test_no_place_is_written_twice_whose_order_is_open() -> None:
    role = Role("index of elements", "x", 1, is_distinct=True)
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = role.values((2, 4), (2, 3), rng)
        assert rows is not None
        assert all(len(set((row % 4).tolist())) == 3 for row in rows)
        places = Role("places", "x", is_distinct=True).values((2, 3, 5), (6, 2), rng)
        assert places is not None
        assert len({(one % 2, two % 3) for one, two in places.tolist()}) == 6


@pytest.mark.parametrize(("shape", "count"), [((2,), 5), ((3,), 7), ((1,), 4), ((2,), 0), ((4,), 2)])
def test_parts_are_sizes_that_make_up_the_length(shape: tuple[int, ...], count: int) -> None:
    role, rng = Role("parts", "x", -1), np.random.default_rng(0)
    drawn = [role.values((3, count), shape, rng) for _ in range(20)]
    assert all(
        parts is not None and parts.shape == shape and parts.sum() == count and parts.min() >= 0 for parts in drawn
    )
