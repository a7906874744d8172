"""Nodes that a runtime gets wrong are replaced by ones that no fact is true of, with the same numbers."""

from __future__ import annotations

import contextlib
import cProfile
import pstats
from itertools import product

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, checker, helper, parser
from onnx.reference import ReferenceEvaluator

from reducelower import ConversionError, Target, check, legalize
from reducelower.adapters.reductions import REDUCTIONS
from reducelower.legalization.memo.memory import forget
from reducelower.runtimes import Runtime
from tests.runtimes.toaster import HEAD, runtime

X = np.array([[[1, -2, 3, 4], [0.5, 2, -1, 7], [3, 3, 1, 2]], [[9, 8, 7, 6], [5, 4, 3, 2], [1, 1, 1, 1]]], np.float32)

NUMPY = {
    "ReduceL1": lambda x, **how: np.abs(x).sum(**how),
    "ReduceL2": lambda x, **how: np.sqrt((x.astype(np.float64) ** 2).sum(**how)),
    "ReduceLogSum": lambda x, **how: np.log(np.abs(x).sum(**how)),
    "ReduceLogSumExp": lambda x, **how: np.log(np.exp(x.astype(np.float64)).sum(**how)),
    "ReduceMax": lambda x, **how: x.max(**how),
    "ReduceMean": lambda x, **how: x.mean(**how),
    "ReduceMin": lambda x, **how: x.min(**how),
    "ReduceProd": lambda x, **how: x.prod(**how),
    "ReduceSum": lambda x, **how: x.sum(**how),
    "ReduceSumSquare": lambda x, **how: (x**2).sum(**how),
}


def model(body: str, opset: int = 13, *, rank_out: int = 3, element: str = "float") -> ModelProto:
    shape = f"[{', '.join('abcd'[:rank_out])}]" if rank_out else ""
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g ({element}[2,3,4] x) => ({element}{shape} y) {{ {body} }}
    """)


def fit(source: ModelProto, target: Runtime, opset: int | None = None) -> ModelProto:
    fitted = legalize(source, Target(opset, runtime=target)).model
    checker.check_model(fitted, full_check=True)
    return fitted


def run(fitted: ModelProto, x: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(fitted.SerializeToString()).run(None, {"x": x})[0]


def operators(fitted: ModelProto) -> list[str]:
    return [node.op_type for node in fitted.graph.node]


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize(("axes", "keepdims"), list(product([(1,), (0, 2), (0, 1, 2)], (0, 1))))
@pytest.mark.parametrize(
    "fact",
    [
        "when = { keepdims = ['0'] }",
        "when = { keepdims = ['1'] }",
        "when = { axes_count = '2-' }",
        "when = { rank_out = 0 }",
        "when = { all_axes = true }",
        "when = { negative_axes = true }",
    ],
)
def test_another_way_to_write_it(op_type: str, axes: tuple[int, ...], keepdims: int, fact: str) -> None:
    written = [axis - 3 for axis in axes]
    source = model(
        f"a = Abs (x) y = {op_type} <axes = {written}, keepdims = {keepdims}> (a)",
        11,
        rank_out=3 if keepdims else 3 - len(axes),
    )
    target = runtime(f"operators = ['{op_type}']\nis = 'wrong'\n{fact}")
    expected = NUMPY[op_type](np.abs(X), axis=axes, keepdims=bool(keepdims))
    found = run(fit(source, target, 11), X)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "op_type", [name for name in REDUCTIONS if name not in ("ReduceSum", "ReduceMax", "ReduceProd")]
)
@pytest.mark.parametrize("opset", [9, 11, 13, 18])
def test_an_operator_that_is_absent_becomes_others(op_type: str, opset: int) -> None:
    axes = "<axes = [1], keepdims = 1>" if opset < 18 else "<keepdims = 1>"
    inputs = "a" if opset < 18 else "a, axes"
    constant = "" if opset < 18 else "axes = Constant <value_ints = [1]> ()"
    source = model(f"a = Abs (x) {constant} y = {op_type} {axes} ({inputs})", opset)
    absent = runtime(f"operators = ['{op_type}']\nis = 'absent'")
    fitted = fit(source, absent, opset)
    assert op_type not in operators(fitted)
    np.testing.assert_allclose(run(fitted, X), NUMPY[op_type](np.abs(X), axis=1, keepdims=True), rtol=1e-5)


def test_no_way_is_a_refusal_with_the_fact() -> None:
    source = model("y = ReduceSum <axes = [1]> (x)", 11)
    absent = runtime("operators = ['ReduceSum']\nis = 'absent'")
    with pytest.raises(ConversionError, match=r"on toaster 1\.0, it is missing: Fact 1\."):
        fit(source, absent, 13)


def test_what_no_fact_is_true_of_stays_byte_for_byte() -> None:
    source = model("y = ReduceL1 <axes = [1]> (x)")
    other_form = runtime("operators = ['ReduceL1']\nis = 'wrong'\nwhen = { keepdims = ['0'] }")
    assert fit(source, other_form).SerializeToString() == source.SerializeToString()


def test_a_reduction_of_nothing_becomes_its_elementwise_step() -> None:
    source = model("y = ReduceL1 <noop_with_empty_axes = 1> (x)", 18)
    noop = runtime("operators = ['ReduceL1']\nis = 'wrong'\nwhen = { noop = ['1'], axes = ['absent'] }")
    fitted = fit(source, noop, 18)
    assert operators(fitted) == ["Abs"]
    np.testing.assert_array_equal(run(fitted, X), np.abs(X))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "ReduceSum"])
@pytest.mark.parametrize("axes", [(1,), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("element", ["int32", "int64"])
def test_integers_that_come_out_coarse_are_sorted_or_summed_up_step_by_step(
    op_type: str, axes: tuple[int, ...], keepdims: int, element: str
) -> None:
    written = f"<axes = {list(axes)}, keepdims = {keepdims}>"
    source = model(f"y = {op_type} {written} (x)", 11, rank_out=3 if keepdims else 3 - len(axes), element=element)
    coarse = runtime(f"operators = ['{op_type}']\nis = 'overflows'\nwhen = {{ element_types = ['{element}'] }}")
    fitted = fit(source, coarse)
    assert op_type not in operators(fitted)
    x = np.random.default_rng(5).integers(-(2**27), 2**27, (2, 3, 4)).astype(element)
    np.testing.assert_array_equal(run(fitted, x), NUMPY[op_type](x, axis=axes, keepdims=bool(keepdims)))


@pytest.mark.parametrize(
    ("op_type", "element", "expected"),
    [  # by the pages of the operators
        ("ReduceL1", "float", 0),
        ("ReduceL2", "double", 0),
        ("ReduceLogSum", "float", -np.inf),
        ("ReduceLogSumExp", "float16", -np.inf),
        ("ReduceMax", "float", -np.inf),
        ("ReduceMax", "int32", -(2**31)),
        ("ReduceMin", "float", np.inf),
        ("ReduceMin", "uint8", 255),
        ("ReduceProd", "float", 1),
        ("ReduceSum", "int64", 0),
        ("ReduceSumSquare", "float", 0),
    ],
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_what_comes_of_no_values_is_a_constant(op_type: str, element: str, expected: float, keepdims: int) -> None:
    source = parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 20]>
        g ({element}[2,0,3] x) => ({element}[{"2,1,3" if keepdims else "2,3"}] y) <int64[1] axes = {{1}}>
        {{ y = {op_type} <keepdims = {keepdims}> (x, axes) }}
    """)
    target = runtime(f"operators = ['{op_type}']\nis = 'wrong'\nwhen = {{ no_values = true }}")
    fitted = fit(source, target, 20)
    assert op_type not in operators(fitted)
    dtype = helper.tensor_dtype_to_np_dtype(source.graph.input[0].type.tensor_type.elem_type)
    found = run(fitted, np.zeros((2, 0, 3), dtype))
    np.testing.assert_array_equal(found, np.full((2, 1, 3) if keepdims else (2, 3), expected, dtype))


@pytest.mark.parametrize(
    ("op_type", "expected"),
    [("ReduceL1", 3), ("ReduceL2", 3), ("ReduceLogSumExp", -3), ("ReduceMean", -3), ("ReduceSumSquare", 9)],
)
def test_a_scalar_goes_through_the_elementwise_step(op_type: str, expected: float) -> None:
    source = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 13]> g (float x) => (float y) {{ y = {op_type} <keepdims = 0> (x) }}
    """)
    fitted = fit(source, runtime("operators = ['Reduce*']\nis = 'refused'\nwhen = { rank = '0' }"))
    assert not any(name.startswith("Reduce") for name in operators(fitted))
    assert run(fitted, np.array(-3, np.float32)) == expected


@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceMean"])
def test_a_result_without_values_is_a_constant_where_the_operator_is_absent(op_type: str) -> None:
    source = parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 18]> g (float[2,0,3] x) => (float[0,3] y) <int64[1] axes = {{0}}>
        {{ y = {op_type} <keepdims = 0> (x, axes) }}
    """)
    fitted = fit(source, runtime(f"operators = ['{op_type}']\nis = 'absent'"), 18)
    assert operators(fitted) == ["Identity"]
    assert run(fitted, np.zeros((2, 0, 3), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("given", ["shape", "made", "stored"])
def test_a_shape_that_is_fed_is_told_from_others(given: str) -> None:
    source = parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 18]> g (float[6] x, int64[2] shape) => (float[a,b] y)
        <int64[2] stored = {{2, 3}}> {{ made = Abs (shape) y = Reshape (x, {given}) }}
    """)
    target = runtime("operators = ['Reshape']\nis = 'refused'\nwhen = { fed = true }")
    if given != "shape":
        assert fit(source, target, 18).SerializeToString() == source.SerializeToString()
    else:
        with pytest.raises(ConversionError, match="Reshape"):
            fit(source, target, 18)


@pytest.mark.parametrize("shape", ["[2,1,3]", "[2,n,3]", "[0,2,3]"])
def test_what_has_values_stays(shape: str) -> None:
    source = parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 20]> g (float{shape} x) => (float[a,1,3] y) <int64[1] axes = {{1}}>
        {{ y = ReduceSum (x, axes) }}
    """)
    target = runtime("operators = ['ReduceSum']\nis = 'wrong'\nwhen = { no_values = true }")
    assert fit(source, target, 20).SerializeToString() == source.SerializeToString()


@pytest.mark.parametrize(("opset", "shape"), [(9, "[2,3,4]"), (13, "[2,n,4]"), (13, "[2,0,4]")])
def test_a_sum_stays_where_no_running_sum_can_stand_for_it(opset: int, shape: str) -> None:
    source = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]> g (int32{shape} x) => (int32[a,b,c] y) {{ y = ReduceSum (x) }}
    """)
    coarse = runtime("operators = ['ReduceSum']\nis = 'overflows'\nwhen = { element_types = ['int32'] }")
    assert operators(fit(source, coarse, opset)) == ["ReduceSum"]


@pytest.mark.parametrize("reduces_nothing", [False, True])
@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"])
def test_unsigned_integers_are_computed_in_64_bits_where_32_have_no_kernel(op_type: str, reduces_nothing: bool) -> None:
    source = model(f"y = {op_type} <noop_with_empty_axes = {int(reduces_nothing)}> (x)", 18, element="uint32")
    absent = runtime(
        f"operators = ['{op_type}', 'Mul', 'Abs']\nis = 'absent'\nwhen = {{ element_types = ['uint32'] }}",
    )
    fitted = fit(source, absent, 18)
    x = np.random.default_rng(5).integers(1, 4, (2, 3, 4)).astype(np.uint32)
    if reduces_nothing:
        expected = x * x if op_type == "ReduceSumSquare" else x
    else:
        expected = NUMPY[op_type](x.astype(np.uint64), axis=None, keepdims=True).astype(np.uint32)
    np.testing.assert_array_equal(run(fitted, x), expected)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_extremes_of_unsigned_integers_are_computed_in_64_bits_where_there_is_no_double(op_type: str) -> None:
    source = model(f"y = {op_type} (x)", 18, element="uint32")
    absent = runtime("operators = ['Reduce*']\nis = 'absent'\nwhen = { element_types = ['uint32', 'double'] }")
    x = np.random.default_rng(5).integers(0, 2**32, (2, 3, 4), np.uint32)
    # The installed onnxruntime picks others of 64-bit integers beyond 31 bits, see onnxruntime.toml.
    (found,) = ReferenceEvaluator(fit(source, absent, 18)).run(None, {"x": x})
    np.testing.assert_array_equal(found, NUMPY[op_type](x, axis=None, keepdims=True))


def test_overflow_is_mended_by_a_rule_that_keeps_values_in_range() -> None:
    source = model("y = ReduceLogSumExp <axes = [2]> (x)")
    overflowing = runtime("operators = ['ReduceLogSumExp']\nis = 'overflows'")
    fitted = fit(source, overflowing)
    assert "ReduceLogSumExp" not in operators(fitted)
    x = X * 1000
    shift = x.max(2, keepdims=True).astype(np.float64)
    expected = shift + np.log(np.exp(x - shift).sum(2, keepdims=True))
    np.testing.assert_allclose(run(fitted, x), expected, rtol=1e-6)


def test_no_opset_is_chosen_only_to_lose_an_operator_that_comparisons_do_not_replace() -> None:
    """Opset 9 has no IsInf and would say it by comparisons, on a runtime that cannot tell infinities."""
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] x) => (bool[2,3,4] y) { y = IsInf (x) }
    """)
    finite = runtime("operators = ['IsInf']\nis = 'wrong'")
    with pytest.raises(ConversionError, match="Fact 1"):
        fit(source, finite)


def test_what_reduces_nothing_does_not_overflow() -> None:
    source = model("y = ReduceL2 <noop_with_empty_axes = 1> (x)", 18)
    overflowing = runtime("operators = ['ReduceL2']\nis = 'overflows'")
    assert operators(fit(source, overflowing, 18)) == ["Abs"]


def test_what_is_empty_does_not_overflow() -> None:
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2,0] x) => (float[2,1] y) { y = ReduceL2 <axes = [1]> (x) }
    """)
    overflowing = runtime("operators = ['ReduceL2']\nis = 'overflows'")
    assert fit(source, overflowing) == source


@pytest.mark.parametrize("rules", ["stable", "portable"])
def test_the_rule_book_that_a_target_names_is_tried_first(rules: str) -> None:
    source = model("y = ReduceL2 <axes = [2]> (x)")
    head = HEAD.replace('about = "Made up."', f'about = "Made up."\nrules = "{rules}"')
    legalized = legalize(source, Target(13, runtime=runtime("operators = ['ReduceL2']\nis = 'overflows'", head=head)))
    assert [site.rule for site in legalized.plan.sites] == [f"{rules}/ReduceL2 for toaster"]
    np.testing.assert_allclose(run(legalized.model, X * 1e25), NUMPY["ReduceL2"](X, axis=2, keepdims=True) * 1e25, 1e-6)


def test_overflow_that_nothing_mends_is_left_with_a_note() -> None:
    source = model("y = ReduceL2 <axes = [2]> (x)")
    hopeless = runtime("operators = ['ReduceL2']\nis = 'overflows'", "operators = ['ReduceSum']\nis = 'absent'")
    legalized = legalize(source, Target(13, runtime=hopeless))
    assert operators(legalized.model) == ["ReduceL2"]
    assert legalized.plan.notes == ("on toaster 1.0: Fact 1. No equivalent form avoids that there.",)


def test_wrong_and_overflowing_is_refused_only_for_being_wrong() -> None:
    source = model("y = ReduceLogSum <axes = [2], keepdims = 0> (x)", rank_out=2)
    facts = (
        "operators = ['ReduceLogSum']\nis = 'wrong'\nwhen = { keepdims = ['0'] }",
        "operators = ['ReduceLogSum']\nis = 'overflows'",
        "operators = ['ReduceSum']\nis = 'absent'",
    )
    assert operators(fit(source, runtime(*facts), 13)) == ["ReduceLogSum", "Squeeze"]


def test_integers_are_computed_in_float_and_truncated_where_there_is_no_double() -> None:
    source = model("y = ReduceLogSum <axes = [2], keepdims = 1> (x)", element="int32")
    no_integers = runtime(
        "operators = ['ReduceLogSum']\nis = 'refused'\nwhen = { element_types = ['int32'] }",
        "operators = ['*']\nis = 'refused'\nwhen = { element_types = ['double'] }",
    )
    fitted = fit(source, no_integers)
    x = np.abs(X).astype(np.int32)
    np.testing.assert_array_equal(run(fitted, x), np.log(x.sum(2, keepdims=True)).astype(np.int32))


def test_sums_of_wide_integers_are_not_computed_in_float() -> None:
    source = model("y = ReduceSum <keepdims = 1> (x)", element="int64")
    no_integers = runtime("operators = ['ReduceSum']\nis = 'refused'\nwhen = { element_types = ['int64'] }")
    with pytest.raises(ConversionError, match="Fact 1"):
        fit(source, no_integers)


def test_what_an_attempt_added_does_not_stay() -> None:
    """A part of the rule is mended before another turns out to be absent, so that all is given up."""
    source = model("y = ReduceLogSumExp <axes = [0, 1]> (x)")
    hopeless = runtime(
        "operators = ['ReduceLogSumExp']\nis = 'overflows'",
        "operators = ['ReduceMax']\nis = 'wrong'\nwhen = { axes_count = '2-' }",
        "operators = ['ReduceSum']\nis = 'absent'",
    )
    assert fit(source, hopeless, 13) == source


@pytest.mark.parametrize(
    ("op_type", "said"), [("ReduceLogSum", "adds up first"), ("ReduceL2", "squares before it adds up")]
)
def test_what_an_attempt_excused_is_not_told(op_type: str, said: str) -> None:
    """The stable rule takes a maximum that overflows and then divides, which is absent; the plain one does neither."""
    source = model(f"y = {op_type} <axes = [1], keepdims = 1> (x)")
    hopeless = runtime(
        f"operators = ['{op_type}']\nis = 'absent'",
        "operators = ['ReduceMax']\nis = 'overflows'",
        "operators = ['Div']\nis = 'absent'",
    )
    legalized = legalize(source, Target(13, runtime=hopeless))
    (note,) = legalized.plan.unmended
    assert said in note
    assert legalize(source, Target(13, runtime=hopeless)).plan == legalized.plan, "the next model is told the same"
    x = np.abs(X)  # of which there are logarithms
    np.testing.assert_allclose(run(legalized.model, x), NUMPY[op_type](x, axis=1, keepdims=True), 1e-6)


def test_unknown_element_types_are_asked_for() -> None:
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13, "own" : 1]>
        g (float[2,3,4] x) => (float[2,1,4] y) {
          a = own.Mystery (x) b = ReduceSum <keepdims = 1> (a) y = own.Mystery (b)
        }
    """)
    no_integers = runtime("operators = ['ReduceSum']\nis = 'wrong'\nwhen = { element_types = ['int32'] }")
    with pytest.raises(ConversionError, match="declare it with --type a=float32"):
        legalize(source, Target(13, runtime=no_integers))
    given = legalize(source, Target(13, runtime=no_integers), element_types={"a": "float"})
    assert given.model == source


def test_unknown_element_types_of_other_operators_are_taken_to_be_right() -> None:
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13, "own" : 1]>
        g (float[2,3,4] x) => (float[2,3,4] y) { a = own.Mystery (x) y = Abs (a) }
    """)
    no_integers = runtime("operators = ['*']\nis = 'refused'\nwhen = { element_types = ['int32'] }")
    assert legalize(source, Target(13, runtime=no_integers)).model == source


def test_overflow_is_mended_at_the_opset_that_can() -> None:
    """At opset 18 the rule that keeps values in range lacks ReduceMax."""
    source = model("axes = Constant <value_ints = [1]> () y = ReduceL2 <keepdims = 1> (x, axes)", 18)
    lacking = runtime(
        "operators = ['ReduceL2']\nis = 'absent'", "operators = ['ReduceMax']\nis = 'absent'\nopsets = '14-'"
    )
    fitted = legalize(source, Target(runtime=lacking))
    assert fitted.plan.target.opset == 13
    assert "ReduceMax" in operators(fitted.model)
    at_its_own = legalize(source, Target(18, runtime=lacking))
    assert "ReduceMax" not in operators(at_its_own.model)
    assert "squares before it adds up" in at_its_own.plan.notes[0]


def test_many_equal_nodes_fare_alike() -> None:
    lines = " ".join(
        f"v{at + 1} = ReduceL1 <axes = [1], keepdims = 0> (v{at}r) v{at + 1}r = Reshape (v{at + 1}, s)"
        for at in range(5)
    )
    source = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] v0r) => (float[2,4] v5) <int64[3] s = {{2, 1, 4}}> {{ {lines} }}
    """)
    target = runtime("operators = ['ReduceL1']\nis = 'wrong'\nwhen = { keepdims = ['0'] }")
    fitted = fit(source, target)
    kinds = operators(fitted)
    assert kinds.count("Squeeze") == 5
    x = np.abs(X)
    session = onnxruntime.InferenceSession(fitted.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"v0r": x})[0], x.sum(1), rtol=1e-6)


def test_subgraphs_and_functions_are_fitted_too() -> None:
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13, "own" : 1]>
        g (float[2,3,4] x, bool c) => (float[a,b,d] y) {
            z = If (c) <
                then_branch = t () => (float[a,b,d] u) { u = ReduceL1 <axes = [1]> (x) },
                else_branch = e () => (float[a,b,d] v) { v = own.norm (x) }
            >
            y = Identity (z)
        }
        <domain: "own", opset_import: ["" : 13]>
        norm (p) => (q) { q = ReduceL1 <axes = [1]> (p) }
    """)
    absent = runtime("operators = ['ReduceL1']\nis = 'absent'")
    fitted = fit(source, absent)
    session = onnxruntime.InferenceSession(fitted.SerializeToString())
    for condition in (True, False):
        found = session.run(None, {"x": X, "c": np.array(condition)})[0]
        np.testing.assert_allclose(found, np.abs(X).sum(1, keepdims=True), rtol=1e-6)
    assert b"ReduceL1" not in fitted.SerializeToString().replace(b"/ReduceL1/", b"")


def test_keeps_its_own_opset_unless_the_preferred_one_takes_fewer_rewrites() -> None:
    source = model("a = ReduceL1 <axes = [1]> (x) y = ReduceL1 <axes = [2]> (a)", 11)
    wrong = runtime("operators = ['ReduceL1']\nis = 'wrong'\nopsets = '9-11'")
    assert fit(source, wrong).opset_import[0].version == 13
    assert operators(fit(source, wrong)) == ["ReduceL1", "ReduceL1"]
    fine = runtime("operators = ['ReduceL2']\nis = 'wrong'\nopsets = '9-11'")
    assert fit(source, fine).opset_import[0].version == 11


def test_tries_other_opsets_where_the_preferred_one_will_not_do() -> None:
    source = model("y = ReduceSum <axes = [1]> (x)", 11)
    wrong = runtime("operators = ['ReduceSum']\nis = 'absent'\nopsets = '9-17'")
    assert fit(source, wrong).opset_import[0].version == 18


def test_an_opset_that_the_runtime_does_not_read_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"toaster 1\.0 reads opsets 9-21, not 22"):
        legalize(model("y = Identity (x)"), Target(22, runtime=runtime()))


def test_a_model_newer_than_the_runtime_reads_comes_down() -> None:
    newer = model("axes = Constant <value_ints = [1]> () y = ReduceMax <keepdims = 1> (x, axes)", 22)
    fitted = fit(newer, runtime())
    assert fitted.opset_import[0].version == 13


def test_check_tells_what_goes_wrong_at_the_models_own_opset() -> None:
    source = model("a = ReduceL1 <axes = [1]> (x) y = ReduceL1 <axes = [2]> (a)", 11)
    wrong = runtime("operators = ['ReduceL1']\nis = 'wrong'\nopsets = '9-11'")
    plan = check(source, target=Target(runtime=wrong))
    assert plan.target.opset == 13
    assert plan.as_it_is is not None
    assert plan.as_it_is.reasons == {"Fact 1.": 2}


def test_the_newest_ir_version_a_runtime_reads_is_kept_to() -> None:
    source = model("y = Identity (x)", 13)
    source.ir_version = 10
    source.graph.node[0].metadata_props.add(key="namespace", value="who cares")
    old = runtime(head=HEAD + "ir_version = 7\n")
    fitted = legalize(source, Target(runtime=old)).model
    assert fitted.ir_version == 7
    source.functions.add(name="f", domain="own").opset_import.add(domain="", version=13)
    source.opset_import.add(domain="own", version=1)
    with pytest.raises(
        ConversionError, match="reads IR versions up to 7, and the model uses what came with IR version 8"
    ):
        legalize(source, Target(runtime=old))


ML_MODEL = """
    <ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : {version}]>
    g (float[2,3] x) => (float[2,3] y) {{ y = {node} (x) }}
"""


@pytest.mark.parametrize("node", ["Relu", "ai.onnx.ml.Normalizer"])
def test_ai_onnx_ml_is_imported_at_what_the_runtime_reads(node: str) -> None:
    source = parser.parse_model(ML_MODEL.format(version=5, node=node))
    old = runtime(head=HEAD + "ml = 3\n")
    made = legalize(source, Target(runtime=old)).model
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 13, "ai.onnx.ml": 3}


def test_an_operator_of_ai_onnx_ml_that_uses_what_is_new_is_refused() -> None:
    keys = "ai.onnx.ml.LabelEncoder <keys_tensor = float[1] {1}, values_tensor = float[1] {2}>"
    source = parser.parse_model(ML_MODEL.format(version=4, node=keys))
    old = runtime(head=HEAD + "ml = 3\n")
    with pytest.raises(ConversionError, match=r"LabelEncoder.*reads ai\.onnx\.ml up to version 3"):
        legalize(source, Target(runtime=old))


WITHOUT_UINT32 = "operators = ['Reduce*']\nis = 'refused'\nwhen = { element_types = ['uint32'] }"
CAST_TO_UINT32 = "operators = ['Cast']\nis = 'wrong'\nwhen = { output_types = ['uint32'] }"
NO_AXES = "operators = ['Reduce*']\nis = 'refused'\nwhen = { axes = ['dynamic', 'attribute'] }"
NO_EXP = "operators = ['Exp']\nis = 'absent'"


@pytest.mark.parametrize(
    ("op_type", "element", "facts"),
    [
        ("ReduceSumSquare", "uint32", [WITHOUT_UINT32, CAST_TO_UINT32]),
        ("ReduceLogSumExp", "double", [NO_AXES, NO_EXP]),
    ],
)
def test_what_is_in_vain_is_not_searched(op_type: str, element: str, facts: list[str]) -> None:
    """Some 230 forms are tried; more than 330 if failed searches, or nodes that nothing stands for, were not known."""
    target = runtime(*facts)
    source = model(f"y = {op_type} <axes = [1], keepdims = 0> (x)", rank_out=2, element=element)
    profile = cProfile.Profile()
    forget()
    with contextlib.suppress(ConversionError):
        profile.runcall(fit, source, target)
    (tried,) = (calls for (_, _, name), (_, calls, *_) in pstats.Stats(profile).stats.items() if name == "_apply")
    assert 0 < tried <= 300


def test_axes_known_at_run_time_only_matter_where_all_else_of_a_fact_is_true() -> None:
    source = model("y = ReduceSum <keepdims = 1> (x, axes)")
    source.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, [1]))
    many = "operators = ['Reduce*']\nis = 'wrong'\nwhen = {{ axes_count = '3-', rank = '{}' }}"
    plans = [check(source, target=Target(runtime=runtime(many.format(rank)))) for rank in ("5-", "3-")]
    assert [bool(plan.sites or plan.refusals) for plan in plans] == [False, True]


def test_what_comes_out_no_better_is_not_taken_where_the_operator_is_absent_either() -> None:
    hard = "operators = ['HardSwish']\nis = 'absent'{}"
    source = model("y = HardSwish (x)", rank_out=3, opset=14)
    others = fit(source, runtime(hard.format("")))
    assert "HardSwish" not in [node.op_type for node in others.graph.node]
    with pytest.raises(ConversionError, match="no equivalent form comes out better"):
        legalize(source, Target(13, runtime=runtime(hard.format("\nnot_by = ['HardSwish by other operators']"))))


def test_a_fact_about_some_nodes_does_not_keep_others_from_being_written_otherwise() -> None:
    narrow = "operators = ['CenterCropPad']\nis = 'wrong'\nwhen = { attributes = ['axes'] }"
    toaster = runtime(f"{narrow}\nnot_by = ['CenterCropPad by other operators']")
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[3,4] x, int64[2] s) => (float[a,b] y) {{ y = {} (x, s) }}'
    made = legalize(parser.parse_model(text.format("CenterCropPad")), Target(13, runtime=toaster)).model
    assert "CenterCropPad" not in [node.op_type for node in made.graph.node]
    with pytest.raises(ConversionError, match="no equivalent form comes out better"):
        legalize(parser.parse_model(text.format("CenterCropPad <axes = [0, 1]>")), Target(13, runtime=toaster))


def test_axes_that_are_fed_and_hold_none_are_left_out() -> None:
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x, int64[0] axes) => (float[1,1] y) { y = ReduceSum (x, axes) }
    """)
    dynamic = "operators = ['Reduce*']\nis = 'refused'\nwhen = { axes = ['dynamic', 'empty'] }"
    (node,) = fit(source, runtime(dynamic)).graph.node
    assert (node.op_type, list(node.input)) == ("ReduceSum", ["x"])
