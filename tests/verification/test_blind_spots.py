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
from reducelower.verification.inputs.made import InputSpec

from .models import model

SLICED = (
    "g (float[N, 4] x) => (float[M, 4] y) <int64[1] s = {{0}}, int64[1] e = {{{}}}, int64[1] a = {{0}}> "
    "{{ y = Slice (x, s, e, a) }}"
)
BRANCHED = (
    "g (float[N] x) => (float[N] y) <int64[1] k = {{{}}}> {{ n = Shape (x)  c = Greater (n, k)  m = Squeeze (c)  "
    "y = If (m) <then_branch = t () => (float[N] p) {{ p = Neg (x) }}, "
    "else_branch = e () => (float[N] q) {{ q = Abs (x) }}> }}"
)


@pytest.mark.parametrize(("end", "other"), [(50, 49), (50, 2**63 - 1), (-50, -51), (1000, 1001), (5000, 4999)])
def test_the_end_of_a_slice_beyond_the_sizes_is_seen(end: int, other: int) -> None:
    assert verify(model(SLICED.format(end)), model(SLICED.format(other))).verdict == "different"


@pytest.mark.parametrize("end", [2000, 3000])  # beside two of the other free size, and beside one
def test_the_end_of_a_slice_is_seen_beside_large_sizes(end: int) -> None:
    text = SLICED.replace("float[N, 4] x", "float[N, K, 768] x").replace("float[M, 4] y", "float[M, K, 768] y")
    assert verify(model(text.format(end)), model(text.format(end + 1))).verdict == "different"


def test_the_same_end_beyond_the_sizes_is_the_same() -> None:
    twice = SLICED.replace("y = Slice (x, s, e, a)", "t = Slice (x, s, e, a)  y = Slice (t, s, e, a)")
    assert verify(model(SLICED.format(50)), model(twice.format(50))).verdict == "equivalent"


def test_the_size_at_which_a_branch_is_taken_is_seen() -> None:
    assert verify(model(BRANCHED.format(40)), model(BRANCHED.format(41))).verdict == "different"


SUMMED = (
    "g (float[N, 4] x) => (float[N, 4] y) <float k = {{{}}}> {{ t = ReduceSum <keepdims = 0> (x)  c = Greater (t, k)  "
    "y = If (c) <then_branch = t () => (float[N, 4] p) {{ p = Neg (x) }}, "
    "else_branch = e () => (float[N, 4] q) {{ q = Abs (x) }}> }}"
)


@pytest.mark.parametrize("bound", [0.3, -0.2])
def test_a_bound_that_few_sums_lie_beside_is_searched_for(bound: float) -> None:
    found = verify(model(SUMMED.format(0)), model(SUMMED.format(bound)))
    assert found.verdict == "different"


def test_values_on_a_step_excuse_none_beside_it() -> None:
    text = (
        "g (float[N, 4] x) => (float[N, 4] y) <float a = {{-3}}, float b = {{6}}> "
        "{{ e = Exp (x)  {}  t = Sub (f, a)  c = Clip (t, a, b)  y = Floor (c) }}"
    )
    narrow = "h = Cast <to = 10> (e)  f = Cast <to = 1> (h)"
    assert verify(model(text.format("f = Identity (e)")), model(text.format(narrow))).verdict == "different"


BESIDE = (
    "g (float[N, 4] x, float[M, 4] z) => (float[N, 8] y) <float k = {{1000}}> {{ {}  y = Concat <axis = 1> (p, z) }}"
)


def test_a_bound_is_seen_where_the_first_sizes_do_not_fit_each_other() -> None:
    found = verify(model(BESIDE.format("p = Neg (x)")), model(BESIDE.format("m = Min (x, k)  p = Neg (m)")))
    assert found.verdict == "different"


def fed(specs: list[InputSpec], limits: Limits, accepts: Accepts) -> list[Case]:
    return list(Sets(specs, limits, 0)(accepts, accepts))


def test_the_first_sizes_that_fit_get_every_kind_of_values() -> None:
    specs = [InputSpec(name, TensorProto.FLOAT, (rows, 4)) for name, rows in (("a", "A"), ("b", "B"))]
    labels = [case.label for case in fed(specs, Limits(), lambda feeds: len(feeds["a"]) == len(feeds["b"]) > 0)]
    assert {label.split(" values")[0] for label in labels} >= {"mixed", "huge", "NaN", "infinity", "small"}


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


def test_a_shape_is_fed_as_the_shape_of_what_it_is_of() -> None:
    """What replaces GatherElements takes a Shape that the model has already, and that has to be of the indices."""
    body = (
        "g (float[A, B] x, int64[C, D] i) => (float[E, F] y, int64[2] s) "
        "{ j = Neg (i)  s = Shape (j)  y = GatherElements <axis = 1> (x, j) }"
    )
    source = model(body, 13)
    found = verify(source, convert_version(source, 9))
    assert found.verdict == "equivalent", str(found)


# A table of which the last row differs, read where something is the largest or smallest.
PLACED = (
    "g (float[N, {size}] x) => (int64[A] y) <int64[{rows}] t = {{{values}}}, int64[1] k = {{1}}, int64[1] m = {{-1}}> "
    "{{ p = Sigmoid (x)  {body} }}"
)
READING = {
    "largest": "i = ArgMax <axis = 1, keepdims = 0> (p)  y = Gather (t, i)",
    "smallest": "i = ArgMin <axis = 1, keepdims = 0> (p)  y = Gather (t, i)",
    "first of several": "v, w = TopK <axis = 1> (p, k)  i = Squeeze (w)  j = Reshape (i, m)  y = Gather (t, j)",
    "through a cast": "i = ArgMax <axis = 1, keepdims = 0> (p)  j = Cast <to = 6> (i)  y = Gather (t, j)",
    "elements": "i = ArgMax <axis = 1, keepdims = 0> (p)  y = GatherElements (t, i)",
    "places in several dimensions": "i = ArgMax <axis = 1, keepdims = 1> (p)  y = GatherND (t, i)",
    "where it is true": "h = Hardmax <axis = 1> (p)  b = Cast <to = 9> (h)  i = NonZero (b)  "
    "o = Constant <value_int = 1> ()  j = Gather <axis = 0> (i, o)  y = Gather (t, j)",
}


@pytest.mark.parametrize("size", ["K", "4"])
@pytest.mark.parametrize("reading", READING)
def test_the_last_row_of_a_table_is_reached_by_places_found_in_data(reading: str, size: str) -> None:
    sides = [
        model(PLACED.format(size=size, rows=4, values=f"5, 6, 7, {last}", body=READING[reading])) for last in (8, 9, 8)
    ]
    assert verify(sides[0], sides[1]).verdict == "different"
    assert verify(sides[0], sides[2]).verdict == "equivalent"


def test_a_row_that_surroundings_of_other_sizes_do_not_reach_is_seen() -> None:
    """The quotient of sizes that do not fit each other is first fed where they are one, and so is the place found."""
    text = (
        "g (float[N, 3] x) => (int64[A, B] y) <int64[3] t = {{0, 1, {}}}, int64[1] a = {{1}}, int64[2] s = {{-1, 1}}> "
        "{{ e = Exp (x)  r = ReduceSum (e, a)  z = Reshape (r, s)  p = Div (e, z)  i = ArgMax <axis = 1> (p)  "
        "y = Gather (t, i) }}"
    )
    assert verify(model(text.format(2)), model(text.format(3))).verdict == "different"


def test_a_row_that_no_index_reaches_is_no_difference_that_shows() -> None:
    """A table of five rows, read where the largest of three stands."""
    sides = [
        model(PLACED.format(size=3, rows=5, values=f"5, 6, 7, 8, {last}", body=READING["largest"])) for last in (8, 9)
    ]
    assert verify(*sides).verdict != "different"


QUANTIZED = (
    "g (float[N, 4] x) => (uint8[N, 4] y) <float s = {{{}}}, uint8 z = {{3}}, float h = {{0.5}}, float zf = {{3}}, "
    "float lo = {{0}}, float hi = {{255}}> {{ {} }}"
)
SATURATED = "c = Clip (p, lo, hi)  y = Cast <to = 2> (c)"
TIES = {
    "up": "d = Div (x, s)  a = Add (d, h)  r = Floor (a)  p = Add (r, zf)",
    "down": "d = Div (x, s)  a = Sub (d, h)  r = Ceil (a)  p = Add (r, zf)",
    "away from zero": "d = Div (x, s)  g = Sign (d)  b = Abs (d)  a = Add (b, h)  f = Floor (a)  r = Mul (g, f)  "
    "p = Add (r, zf)",
    "to the even step beside an odd zero point": "d = Div (x, s)  a = Add (d, zf)  p = Round (a)",
}


@pytest.mark.parametrize("step", [0.1, 0.05, 0.3, 1.7])
@pytest.mark.parametrize("ties", TIES)
def test_where_ties_of_a_quotient_go_is_seen_whatever_the_step(ties: str, step: float) -> None:
    source = model(QUANTIZED.format(step, "y = QuantizeLinear (x, s, z)"))
    assert verify(source, model(QUANTIZED.format(step, f"{TIES[ties]}  {SATURATED}"))).verdict == "different"
    even = f"d = Div (x, s)  r = Round (d)  p = Add (r, zf)  {SATURATED}"
    assert verify(source, model(QUANTIZED.format(step, even))).verdict == "equivalent"


@pytest.mark.parametrize(
    ("kind", "limit", "steps"), [("int32", 6, (-3, -4)), ("float", 100, (-2.5, -2)), ("int64", -5, (2, 3))]
)
def test_a_range_starts_on_either_side_of_what_it_holds(kind: str, limit: int, steps: tuple[float, float]) -> None:
    """No start beside zero gives any element where the way leads away from the other end."""
    text = "g ({0} s) => ({0}[N] y) <{0} e = {{{1}}}, {0} d = {{{2}}}> {{ y = Range (s, e, d) }}"
    source, other = (model(text.format(kind, limit, step)) for step in steps)
    assert verify(source, other).verdict == "different"


@pytest.mark.parametrize("said", [", ignore_index = 10", ", ignore_index = -5", ""])
def test_the_class_that_a_loss_ignores_is_fed(said: str) -> None:
    text = (
        "g (float[3, 5, 6] x, int64[3, 6] t) => (float y) <float[5] w = {{0.3, 0.4, 0.7, 0.4, 0.9}}> "
        '{{ y = NegativeLogLikelihoodLoss <reduction = "mean"{}> (x, t, w) }}'
    )
    assert verify(model(text.format(", ignore_index = -1")), model(text.format(said))).verdict == "different"


def test_integers_that_the_input_does_not_hold_are_no_value_for_it() -> None:
    text = (
        "g (uint64[2] x) => (uint64[2] y) <uint64[2] s = {18446744073709551615, 1}> "
        "{ y = BitShift <direction = '%s'> (x, s) }"
    )
    left, right = (model((text % way).replace("'", '"')) for way in ("LEFT", "RIGHT"))
    assert verify(left, left).verdict == "equivalent"
    assert verify(left, right).verdict == "different"


INDEXED = {
    "written elements": "y = ScatterElements <axis = 1> (x, {}, u)",
    "elements that are added to": 'y = ScatterElements <axis = 1, reduction = "add"> (x, {}, u)',
    "read elements": "y = GatherElements <axis = 1> (x, {})",
}
PLACES = {
    "read": "y = GatherND (x, {})",
    "read in batches": "y = GatherND <batch_dims = 1> (x, {})",
    "written": "y = ScatterND (x, {}, u)",
    "added to": 'y = ScatterND <reduction = "add"> (x, {}, u)',
}


@pytest.mark.parametrize("reading", INDEXED)
@pytest.mark.parametrize("axis", ["N", "4"])
def test_indices_of_elements_count_from_the_back(reading: str, axis: str) -> None:
    text = f"g (float[M, {axis}] x, int64[M, 3] i, float[M, 3] u) => (float[A, B] y) <int64 b = {{0}}> {{ "
    source = model(f"{text}{INDEXED[reading].format('i')} }}")
    assert verify(source, model(f"{text}j = Max (i, b)  {INDEXED[reading].format('j')} }}")).verdict == "different"


@pytest.mark.parametrize("reading", PLACES)
def test_each_column_of_places_counts_from_the_back_of_its_own_axis(reading: str) -> None:
    """A bound that lies between the sizes of the two axes that are named shows in the second column alone."""
    low = -3 if "batches" in reading else -2
    text = (
        "g (float[2, 3, 5] x, int64[2, 2] i, float[2, 5] u) => (float y) "
        f"<int64[2] b = {{{{-9, {low}}}}}> {{{{ j = Max (i, b)  {PLACES[reading]} }}}}"
    )
    source, other = model(text.format("i")), model(text.format("j"))
    for made in (source, other):
        made.graph.output[0].type.tensor_type.ClearField("shape")
    assert verify(source, other).verdict == "different"
    assert verify(source, source).verdict == "equivalent"


def test_indices_keep_their_axis_where_the_other_side_reads_what_it_computes() -> None:
    text = "g (float[4] x, int64[3] i, float[3] u) => (float[4] y) <int64 b = {{0}}> {{ {} }}"
    after = "z = Neg (x)  h = Neg (z)  j = Max (i, b)  k = Add (j, b)  y = ScatterElements (h, {}, u)"
    source, wrong = (model(text.format(body)) for body in ("y = ScatterElements (x, i, u)", after.format("k")))
    assert verify(source, wrong).verdict == "different"
    assert verify(source, model(text.format(after.format("i")))).verdict == "equivalent"


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


@pytest.mark.parametrize("how", ["none", "sum", "mean"])
def test_what_the_evaluator_loses_as_well_is_no_excuse_where_the_body_holds_it(how: str) -> None:
    """onnx.reference takes the logarithm of probabilities, of which small ones are zero; the body does not."""
    text = "g (float[N, 6] x, int64[N] l) => (float{} y) {{ {} }}"
    shape = "[N]" if how == "none" else ""
    whole = f'y = SoftmaxCrossEntropyLoss <reduction = "{how}"> (x, l)'
    parts = f's = Softmax <axis = 1> (x)  p = Log (s)  y = NegativeLogLikelihoodLoss <reduction = "{how}"> (p, l)'
    found = verify(model(text.format(shape, whole)), model(text.format(shape, parts)))
    assert found.verdict == "different" and [site.status for site in found.sites] == ["loses range"]
