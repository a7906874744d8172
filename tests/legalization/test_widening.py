"""Integers of four bits that are held in eight; `cases/narrow.toml` has what is computed with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import int4
from onnx import TensorProto, helper
from onnx.external_data_helper import set_external_data

import reducelower
from tests.models import converted, model, yields

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
WEIGHTS = np.arange(-15, 15).reshape(6, 5) % 16 - 8
SCALES = np.array([0.5, 0.25, 2, 1, 0.125], np.float32)
GIVEN = model(
    "(float[4,6] x) => (float[4,5] y) { d = DequantizeLinear <axis = 1> (w, s)  y = MatMul (x, d) }",
    21,
    10,
    w=WEIGHTS.astype(int4),
    s=SCALES,
)
EXPECTED = X @ (WEIGHTS.astype(np.float32) * SCALES)


@pytest.mark.parametrize("target", [9, 18])
def test_what_became_of_it_is_verified(target: int) -> None:
    made = reducelower.legalize(GIVEN, reducelower.Target(target))
    assert all(GIVEN.graph.node[site.index].op_type == site.op_type for site in made.plan.sites)
    assert reducelower.verify(GIVEN, made.model, plan=made.plan).verdict == "equivalent"


def test_it_may_be_done_in_place() -> None:
    given = type(GIVEN).FromString(GIVEN.SerializeToString())
    reducelower.convert_version(given, 18, in_place=True)
    assert given == reducelower.convert_version(GIVEN, 18)


def test_weights_in_a_file_are_read_from_it(tmp_path: Path) -> None:
    given = type(GIVEN).FromString(GIVEN.SerializeToString())
    (tmp_path / "weights").write_bytes(given.graph.initializer[0].raw_data)
    set_external_data(given.graph.initializer[0], "weights")
    given.graph.initializer[0].ClearField("raw_data")
    with pytest.raises(reducelower.ConversionError, match="int4"):
        reducelower.convert_version(given, 18)
    read = reducelower.convert_version(given, 18, base_dir=tmp_path)
    np.testing.assert_allclose(yields(read, {"x": X})[0], EXPECTED, rtol=1e-6)


@pytest.mark.parametrize("target", [9, 13, 20])
@pytest.mark.parametrize("held_by", ["a Constant node", "an initializer"])
def test_those_inside_of_branches_are_held_as_well(held_by: str, target: int) -> None:
    given = model(
        """(bool c) => (double[4] y) {
        y = If (c) < then_branch = a () => (double[4] p) { p = Cast <to = 11> (k) },
                     else_branch = b () => (double[4] q) { q = Cast <to = 11> (k2) } > }""",
        21,
        10,
    )
    values = {"k": [1, -8, 7, 0], "k2": [-1, 2, -3, 4]}
    for (name, numbers), attribute in zip(values.items(), given.graph.node[0].attribute, strict=True):
        tensor = helper.make_tensor(name, TensorProto.INT4, [4], numbers)  # ONNX text packs none of them
        if held_by == "an initializer":
            attribute.g.initializer.append(tensor)
        else:
            attribute.g.node.insert(0, helper.make_node("Constant", [], [name], value=tensor))
    result = converted(given, target)
    for condition, expected in zip((True, False), values.values(), strict=True):
        np.testing.assert_array_equal(yields(result, {"c": np.array(condition)})[0], expected)
