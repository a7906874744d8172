"""Right conversions in a table, which were once called different, each with what it takes to be told so.

Beside what a table may hold of a model (see `tables`), a row of `conversions.toml` has:

- ``to``: the opset versions that it is converted to; ``planned``: whether `verify` is given the plan.
- ``verdict``, where it is not ``equivalent``; ``statuses``: those that regions may have; ``noted``: a part of what is
  said or of a note; ``holds``: expressions that are true of what was ``found``.
- ``different``: another model, which is not the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper, parser

from reducelower import Target, legalize
from reducelower.verification import verify
from tests.table import combinations, rows
from tools.node_cases import cases

from .tables import FIELDS, given, holding, is_verdict, written

ROWS = rows(
    Path(__file__).parent / "conversions.toml",
    fields={*FIELDS, "to", "planned", "verdict", "statuses", "noted", "holds", "different"},
)


@pytest.mark.parametrize("claim", ROWS)
def test_the_verdict_on_a_right_conversion(claim: str) -> None:
    row = {key: value for key, value in ROWS[claim].items() if key != "graph"}
    for chosen in combinations(row.get("each", {})):
        source = written(row, ROWS[claim]["graph"], chosen)
        for opset in row["to"]:
            made = legalize(source, Target(opset))
            found = verify(
                source, made.model, plan=made.plan if row.get("planned") else None, inputs=given(row, chosen)
            )
            assert is_verdict(found, row.get("verdict", "equivalent")), f"with {chosen}: {found}"
            assert {site.status for site in found.sites} <= set(
                row.get("statuses", [site.status for site in found.sites])
            )
            notes = [*found.notes, *(note for site in found.sites for note in site.notes)]
            assert row.get("noted", "") in "".join([str(found), *notes])
            assert all(holding(row, found, chosen).values()), (holding(row, found, chosen), str(found))
        if "different" in row:
            assert verify(source, written(row, row["different"], chosen)).verdict == "different"


@pytest.mark.xdist_group("onnx's cases")
def test_a_part_has_the_sizes_that_its_replacement_took_from_declared_shapes() -> None:
    """A mask is padded to the length of the keys, which the result has as a number and the source computes."""
    source = next((case for case in cases() if case.name == "test_attention_4d_causal_padded_kv_bf16_expanded"), None)
    if source is None:
        pytest.skip("the installed onnx has no such case")
    made = legalize(source.model, Target(13))
    for plan in (None, made.plan):
        assert is_verdict(verify(source.model, made.model, plan=plan), "equivalent")


def test_a_norm_that_underflows_in_the_kernel_is_none_of_the_form() -> None:
    """onnxruntime squares small numbers to zero, and divides by nothing then; the form divides by the largest first."""
    source = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22]> g (float[2, 3, N] x) => (float[2, 3, N] y)'
        " { y = LpNormalization (x) }"
    )
    made = legalize(source, Target(without={"LpNormalization"}), rules="stable")
    assert is_verdict(verify(source, made.model, plan=made.plan), "equivalent")


@pytest.mark.parametrize(("scale", "verdict"), [(6.3, "equivalent"), (6.4, "different")])
def test_a_tie_of_a_quantizer_that_is_given_integers(scale: float, verdict: str) -> None:
    """No input can move by its last place; the scales can, which decides ties as well."""
    weights = np.random.default_rng(0).integers(-9, 9, (64, 64)).astype(np.int8)
    floats = "d = DequantizeLinear (x, a, z)  e = DequantizeLinear (w, b, z)"
    sides = []
    for last, body in (
        (6.3, f"{floats}  p = MatMul (d, e)  y = QuantizeLinear (p, c, z)"),
        (scale, "y = QLinearMatMul (x, a, z, w, b, z, c, z)"),
    ):
        side = parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 13]> g (int8[N, 64] x) => (int8[N, 64] y)
            <float a = {{0.5}}, float b = {{0.25}}, float c = {{{last}}}, int8 z = {{0}}> {{ {body} }}"""
        )
        side.graph.initializer.append(numpy_helper.from_array(weights, "w"))
        sides.append(side)
    assert is_verdict(verify(*sides), verdict)


def test_halves_without_elements_end_no_process() -> None:
    """onnxruntime's InstanceNormalization of halves ended it, with no element along an axis."""
    source = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22]> g (float16[N, C, L] x, float16[C] s, float16[C] b)'
        " => (float16[N, C, L] y) { y = InstanceNormalization (x, s, b) }"
    )
    made = legalize(source, Target(without={"InstanceNormalization"}), rules="stable")
    found = verify(source, made.model, plan=made.plan)
    assert found.sites
    assert found.equivalent, str(found)
