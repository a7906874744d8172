"""Nodes that a runtime gets wrong are replaced by ones that no fact is true of, with the same numbers."""

from __future__ import annotations

import contextlib
import cProfile
import pstats

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from reducelower import ConversionError, Target, check, legalize
from reducelower.conformance.case import Case
from reducelower.legalization.memo import forget
from reducelower.model.schemas import opset_of
from tests.models import floats, model, run
from tests.runtimes.toaster import HEAD, runtime


def node(text: str, opset: int = 13) -> ModelProto:
    """A model of data of three dimensions around nodes that give y."""
    return model(f"(float[2,3,4] x) => (float[a,b,c] y) {{ {text} }}", opset)


@pytest.mark.parametrize(
    ("not_by", "rules"), [("", "stable"), ("not_by = ['stable/ReduceL2', 'core/ReduceL2']", "portable")]
)
def test_a_rule_that_is_no_better_is_not_taken(not_by: str, rules: str) -> None:
    source = node("y = ReduceL2 <axes = [2]> (x)")
    target = Target(13, runtime=runtime(f"operators = ['ReduceL2']\nis = 'overflows'\n{not_by}"))
    legalized = legalize(source, target)
    assert [site.rule for site in legalized.plan.sites] == [f"{rules}/ReduceL2 for toaster"]
    x = floats(2, 3, 4)
    norms = np.linalg.norm(x.astype(np.float64), axis=2, keepdims=True)
    np.testing.assert_allclose(run(legalized.model, {"x": x * np.float32(1e25)})[0], norms * 1e25, 1e-6)


def test_an_opset_that_the_runtime_does_not_read_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"toaster 1\.0 reads opsets 9-21, not 22"):
        legalize(node("y = Identity (x)"), Target(22, runtime=runtime()))


def test_check_tells_what_goes_wrong_at_the_models_own_opset() -> None:
    source = node("a = ReduceL1 <axes = [1]> (x) y = ReduceL1 <axes = [2]> (a)", 11)
    wrong = runtime("operators = ['ReduceL1']\nis = 'wrong'\nopsets = '9-11'")
    plan = check(source, target=Target(runtime=wrong))
    assert plan.target.opset == 13
    assert plan.as_it_is is not None
    assert plan.as_it_is.reasons == {"Fact 1.": 2}


def test_the_newest_ir_version_a_runtime_reads_is_kept_to() -> None:
    source = node("y = Identity (x)", 13)
    source.ir_version = 10
    source.graph.node[0].metadata_props.add(key="namespace", value="who cares")
    old = runtime(head=HEAD + "ir_version = 7\n")
    fitted = legalize(source, Target(runtime=old)).model
    assert fitted.ir_version == 7
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [3]))
    source.graph.value_info.add(name="more").type.CopyFrom(optional)
    with pytest.raises(
        ConversionError, match="reads IR versions up to 7, and the model uses what came with IR version 8"
    ):
        legalize(source, Target(runtime=old))


@pytest.mark.parametrize("op_type", ["Relu", "ai.onnx.ml.Normalizer"])
def test_ai_onnx_ml_is_imported_at_what_the_runtime_reads(op_type: str) -> None:
    source = model(f"(float[2,3] x) => (float[2,3] y) {{ y = {op_type} (x) }}", 13, imports='"ai.onnx.ml": 5')
    old = runtime(head=HEAD + "ml = 3\n")
    made = legalize(source, Target(runtime=old)).model
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 13, "ai.onnx.ml": 3}


def test_an_operator_of_ai_onnx_ml_that_uses_what_is_new_is_refused() -> None:
    keys = "ai.onnx.ml.LabelEncoder <keys_tensor = float[1] {1}, values_tensor = float[1] {2}>"
    source = model(f"(float[2,3] x) => (float[2,3] y) {{ y = {keys} (x) }}", 13, imports='"ai.onnx.ml": 4')
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
def test_a_search_in_vain_ends_soon(op_type: str, element: str, facts: list[str]) -> None:
    """Some 160 and 120 forms are tried: first those that leave nothing wrong, then all."""
    target = runtime(*facts)
    text = f"({element}[2,3,4] x) => ({element}[a,b] y) {{ y = {op_type} <axes = [1], keepdims = 0> (x) }}"
    source = model(text, 13)
    profile = cProfile.Profile()
    forget()
    with contextlib.suppress(ConversionError):
        profile.runcall(legalize, source, Target(opset_of(source), runtime=target))
    (tried,) = (calls for (_, _, name), (_, calls, *_) in pstats.Stats(profile).stats.items() if name == "_apply")
    assert 0 < tried <= 200


def test_the_version_that_needs_the_fewest_rewrites_is_chosen() -> None:
    wrong = runtime("operators = ['ReduceL1']\nis = 'wrong'\nopsets = '13'")
    for opset, chosen in ((20, 20), (13, 13), (22, 21)):
        source = node("a = Identity (x) y = ReduceL1 (a)", opset)
        assert check(source, target=Target(runtime=wrong)).target.opset == chosen


def test_of_versions_that_need_as_many_rewrites_the_preferred_one_is_chosen() -> None:
    assert check(node("y = Relu (x)", 22), target=Target(runtime=runtime())).target.opset == 13


def test_weights_of_a_constant_are_not_written_out_as_text() -> None:
    source = node("y = Constant <value = float[3, 2, 2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> ()")
    assert Case("", "Constant", 13, source.SerializeToString(), {}, ()).features.attributes == {"value"}
    named = node("y = Constant <value_float = 1.5> ()")
    assert Case("", "Constant", 13, named.SerializeToString(), {}, ()).features.attributes == {
        "value_float",
        "value_float=1.5",
    }


def test_no_opset_version_is_named_that_the_runtime_does_not_read() -> None:
    known = runtime("operators = ['Atan']\nis = 'absent'\nopsets = '-21'")
    source = model("(float[2,3] x) => (float[2,3] y) { y = Atan (x) }", 24)
    with pytest.raises(ConversionError) as refused:
        legalize(source, Target(runtime=known))
    assert "oldest" not in str(refused.value)
