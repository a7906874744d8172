"""Nodes that a runtime gets wrong are replaced by ones that no fact is true of, with the same numbers."""

from __future__ import annotations

import contextlib
import cProfile
import pstats

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, parser

from reducelower import ConversionError, Plan, Refusal, Target, check, legalize
from reducelower.conformance.case import Case
from reducelower.errors import RuleError
from reducelower.legalization.memo.memory import forget
from reducelower.model.schemas import opset_of
from reducelower.runtimes import Runtime
from reducelower.runtimes.opsets import opset_for
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
    assert said in note and [said in line.text for line in legalized.plan.lines].count(True) == 1
    assert legalize(source, Target(13, runtime=hopeless)).plan == legalized.plan, "the next model is told the same"
    x = np.abs(X)  # of which there are logarithms
    np.testing.assert_allclose(run(legalized.model, x), NUMPY[op_type](x, axis=1, keepdims=True), 1e-6)


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


def test_an_opset_that_the_runtime_does_not_read_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"toaster 1\.0 reads opsets 9-21, not 22"):
        legalize(model("y = Identity (x)"), Target(22, runtime=runtime()))


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


def test_no_version_is_tried_at_which_an_operator_is_what_it_was_refused_as() -> None:
    """ReduceSum changed at 11 and 13 (its page): from 14 to 19 it is what it is at 13, at 11 what it is at 12."""
    tried: list[int | None] = []

    def attempt(target: Target) -> Plan:
        tried.append(target.opset)
        refusals = (Refusal("graph", "sum", "ReduceSum", "it is missing"),)
        return Plan(20, target, refusals=refusals)

    goal = Target(runtime=runtime('operators = ["ReduceSum"]\nis = "absent"\nopsets = "12-21"'))
    assert opset_for(goal, 20, attempt).opset == 20
    assert tried == [20, 13, 12, 11, 10]


def test_a_version_at_which_a_rule_is_broken_is_none_to_choose() -> None:
    def attempt(target: Target) -> Plan:
        if target.opset == 12:
            raise RuleError("this rule is not asked for at any other version")
        refusals = (Refusal("graph", "sum", "ReduceSum", "it is missing"),)
        return Plan(20, target, refusals=() if target.opset == 11 else refusals)

    assert opset_for(Target(runtime=runtime()), 20, attempt).opset == 11


def test_weights_of_a_constant_are_not_written_out_as_text() -> None:
    source = model("y = Constant <value = float[3, 2, 2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> ()")
    assert Case("", "Constant", 13, source.SerializeToString(), {}, ()).features.attributes == {"value"}
    named = model("y = Constant <value_float = 1.5> ()")
    assert Case("", "Constant", 13, named.SerializeToString(), {}, ()).features.attributes == {
        "value_float",
        "value_float=1.5",
    }
