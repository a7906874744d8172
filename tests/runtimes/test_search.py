"""Nodes that a runtime gets wrong are replaced by ones that no fact is true of, with the same numbers."""

from __future__ import annotations

import contextlib
import cProfile
import pstats

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, checker, helper, parser

from reducelower import ConversionError, Target, check, legalize
from reducelower.legalization.memo.memory import forget
from reducelower.model.schemas import opset_of
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


def test_what_no_fact_is_true_of_stays_byte_for_byte() -> None:
    source = model("y = ReduceL1 <axes = [1]> (x)")
    other_form = runtime("operators = ['ReduceL1']\nis = 'wrong'\nwhen = { keepdims = ['0'] }")
    assert fit(source, other_form).SerializeToString() == source.SerializeToString()


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
    """63 and 67 forms are tried; 99 and more if nodes that nothing stands for, or ways that more steps do not help,
    were not known."""
    target = runtime(*facts)
    source = model(f"y = {op_type} <axes = [1], keepdims = 0> (x)", rank_out=2, element=element)
    profile = cProfile.Profile()
    forget()
    with contextlib.suppress(ConversionError):
        profile.runcall(legalize, source, Target(opset_of(source), runtime=target))
    (tried,) = (calls for (_, _, name), (_, calls, *_) in pstats.Stats(profile).stats.items() if name == "_apply")
    assert 0 < tried <= 80


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
