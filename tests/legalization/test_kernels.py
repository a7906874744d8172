"""What the installed onnxruntime has no kernel for is known without loading a model, and said without running one."""

from __future__ import annotations

import onnxruntime
import pytest
from onnx import ModelProto, defs, helper, parser

import reducelower
from reducelower.legalization import kernels
from reducelower.legalization.kernels import cannot_run
from tests.watching import calls_of

NOISE = """<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) {
    r = RandomNormalLike (x)  s = Softmax (r)  y = Add (x, s) }"""


def loads(model: ModelProto) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


@pytest.mark.parametrize("target", range(18, 25))
def test_what_is_said_of_a_raised_model_is_whether_it_loads(target: int) -> None:
    made = reducelower.legalize(parser.parse_model(NOISE), reducelower.Target(target))
    assert loads(made.model) == (made.plan.notes == ())
    assert all("RandomNormalLike of opset 22" in note and "opset 21 is the newest" in note for note in made.plan.notes)


def unary(op_type: str, opset: int) -> ModelProto:
    values = [helper.make_tensor_value_info(name, 1, [1, 1, 3, 3]) for name in "xy"]
    attributes = {name: 1 for name in ("size", "axis") if name in defs.get_schema(op_type, opset, "").attributes}
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"], **attributes)], "g", values[:1], values[1:])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


@pytest.mark.parametrize("opset", [17, 21, 22, 23])
def test_operators_of_one_tensor_of_floats_load_where_nothing_is_said(opset: int) -> None:
    kinds = [found for found in (defs.get_schema(each.name, opset, "") for each in schemas(opset)) if is_unary(found)]
    assert len(kinds) > 25
    for found in kinds:
        model = unary(found.name, opset)
        assert loads(model) == (cannot_run(model, 6, opset) == ""), found.name


@pytest.mark.parametrize("opset", range(7, 22))
def test_all_operators_of_opsets_that_are_not_asked_about_have_kernels(opset: int) -> None:
    assert set(kernels._missing({found.name for found in schemas(opset)}, opset)) <= {"ImageDecoder"}


@pytest.mark.parametrize(("opset", "is_asked"), [(21, False), (22, True)])
def test_to_an_opset_that_runs_whole_onnxruntime_is_not_asked(opset: int, is_asked: bool) -> None:
    kernels._kernels.cache_clear()
    with calls_of(kernels._kernels) as calls:
        made = reducelower.legalize(parser.parse_model(NOISE), reducelower.Target(opset))
    assert (bool(calls), bool(made.plan.notes)) == (is_asked, is_asked)


def schemas(opset: int) -> list[defs.OpSchema]:
    return [each for each in defs.get_all_schemas() if not each.domain and each.since_version <= opset]


def is_unary(found: defs.OpSchema) -> bool:
    """Whether it takes one tensor of floats and yields one, and all that it needs besides is a size or an axis."""
    needed = {name for name, attribute in found.attributes.items() if attribute.required}
    return (
        not found.deprecated
        and (found.min_input, found.min_output) == (1, 1)
        and [each.type_str for each in (found.inputs[0], found.outputs[0])] == ["T", "T"]
        and found.max_output < 9
        and needed <= {"size", "axis"}
        and any(
            "tensor(float)" in each.allowed_type_strs for each in found.type_constraints if each.type_param_str == "T"
        )
    )


def test_nothing_is_said_on_the_way_down_or_of_what_ran_nowhere_before() -> None:
    model = parser.parse_model(NOISE.replace("17", "22"))
    assert reducelower.legalize(model, reducelower.Target(23)).plan.notes == ()
    assert reducelower.legalize(model, reducelower.Target(17)).plan.notes == ()
