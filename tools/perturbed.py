"""Change one thing at random in several forms of one model: after a raise, it must compute the same as before.

python -m tools.perturbed --seed 0 --count 1000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, checker, compose, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower.recompose import raise_with_plan
from reducelower.recompose.expressions import Form, forms_of, known_composites
from tools.sessions import unoptimized
from tools.spelled import LAST, SHAPE, Written, choices, values

FORMS = [form for op_type in known_composites() for form in forms_of(op_type)]
OPSETS = (13, 17, 18, 20, 21, 23)
BLOCKS = 3
"""Forms in one model: what the memo keeps about one must not be used for another."""

Random = np.random.Generator


INSTEAD = {
    "Abs": ["Neg"], "Add": ["Sub", "Mul"], "Div": ["Mul"], "Erf": ["Tanh"], "Exp": ["Sigmoid"], "Log": ["Sqrt"],
    "Max": ["Min", "Add"], "Mul": ["Div", "Add"], "Pow": ["Mul"], "Reciprocal": ["Neg"], "ReduceL2": ["ReduceL1"],
    "ReduceMax": ["ReduceMean"], "ReduceMean": ["ReduceSum", "ReduceMax"], "ReduceSum": ["ReduceMean"],
    "Relu": ["Abs"], "Sqrt": ["Exp", "Abs"], "Sub": ["Add", "Max"], "Tanh": ["Erf"],
}  # fmt: skip
"""Groups of operators that accept the same operands."""


def spelled(form: Form, random: Random) -> ModelProto:
    """A form in one of its ways of writing, with its data as an input."""
    axes = (2,) if form.op_type in ("InstanceNormalization", "GroupNormalization") else (-1,)
    needed = values(Form(form.op_type, "", tuple(n for n in form.inputs if n != "least"), form.result, {}), axes)
    ways = list(choices(form, 12))
    inputs = {**needed, "least": np.array(0.01, np.float32)}
    if "group_shape" in inputs:
        inputs["group_shape"] = np.array([SHAPE[0], 3, -1], np.int64)
    return Written(form, ways[random.integers(len(ways))], inputs).model


# Changes; each returns whether it changed anything


def _node(graph: GraphProto, random: Random, *op_types: str) -> NodeProto | None:
    nodes = [node for node in graph.node if not op_types or node.op_type.startswith(op_types)]
    return nodes[random.integers(len(nodes))] if nodes else None


def _constant(graph: GraphProto, random: Random) -> int | None:
    places = [place for place, tensor in enumerate(graph.initializer) if tensor.data_type == 1]
    return places[random.integers(len(places))] if places else None


def _with_constant(graph: GraphProto, random: Random, change: Callable[[np.ndarray], np.ndarray]) -> bool:
    place = _constant(graph, random)
    if place is None:
        return False
    tensor = graph.initializer[place]
    value = change(numpy_helper.to_array(tensor)).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    return True


def nothing(graph: GraphProto, random: Random) -> bool:
    """Change nothing."""
    return True


def another_operator(graph: GraphProto, random: Random) -> bool:
    """Replace the operator of one node by another one for the same operands."""
    node = _node(graph, random, *INSTEAD)
    if node is None or node.op_type not in INSTEAD:
        return False
    node.op_type = str(random.choice(INSTEAD[node.op_type]))
    return True


def operands_swapped(graph: GraphProto, random: Random) -> bool:
    """Exchange the operands of a node."""
    node = _node(graph, random, "Sub", "Div", "Pow", "Add", "Mul")
    if node is None:
        return False
    node.input[:] = [node.input[1], node.input[0]]
    return True


def another_value(graph: GraphProto, random: Random) -> bool:
    """Let a node read another value that comes before it."""
    place = int(random.integers(len(graph.node)))
    node = graph.node[place]
    readable = [graph.input[0].name, *(name for before in graph.node[:place] for name in before.output)]
    readable += [tensor.name for tensor in graph.initializer if tensor.data_type == 1]
    at = int(random.integers(min(len(node.input), 1 if node.op_type.startswith("Reduce") else 2)))
    node.input[at] = str(random.choice(readable))
    return True


def another_number(graph: GraphProto, random: Random) -> bool:
    """Change a constant by much or by little."""
    return _with_constant(graph, random, lambda value: value * np.float32(random.choice([0.5, 1.01, -1.0, 0.0, 3.0])))


def another_shape(graph: GraphProto, random: Random) -> bool:
    """Broadcast a constant to another shape, with other numbers in it."""
    shapes = [(1,), (1, 1), (LAST,), (SHAPE[1], 1), (SHAPE[0], 1, 1), (1, 1, 1), (1, 1, 1, 1), SHAPE, (SHAPE[1], LAST)]

    def change(value: np.ndarray) -> np.ndarray:
        shape = shapes[random.integers(len(shapes))]
        return np.full(shape, value.reshape(-1)[0]) * (1 if random.integers(2) else random.normal(1, 0.3, shape))

    return _with_constant(graph, random, change)


def no_dimensions_kept(graph: GraphProto, random: Random) -> bool:
    """Let a reduction drop its axes; data of one size in all dimensions still broadcast."""
    node = _node(graph, random, "Reduce")
    if node is None:
        return False
    kept = [attribute for attribute in node.attribute if attribute.name != "keepdims"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("keepdims", 0)])
    return True


def other_axes(graph: GraphProto, random: Random) -> bool:
    """Change the axes of one reduction."""
    node = _node(graph, random, "Reduce")
    if node is None or len(node.input) < 2:
        return False
    axes = [[-1], [1], [0], [1, 2], [2], [0, 1, 2], [-2], [0, 2]][random.integers(8)]
    graph.initializer.append(numpy_helper.from_array(np.array(axes, np.int64), "other_axes"))
    node.input[1] = "other_axes"
    return True


def all_axes(graph: GraphProto, random: Random) -> bool:
    """Change the axes of all reductions."""
    axes = [[-1], [1], [0], [1, 2], [2], [0, 1, 2], [-2], [2, 1]][random.integers(8)]
    graph.initializer.append(numpy_helper.from_array(np.array(axes, np.int64), "all_axes"))
    for node in graph.node:
        if node.op_type.startswith("Reduce") and len(node.input) > 1:
            node.input[1] = "all_axes"
    return True


def read_outside(graph: GraphProto, random: Random) -> bool:
    """Make an inner value an output as well."""
    node = _node(graph, random)
    if node is None or node.output[0] == graph.output[0].name:
        return False
    graph.output.add(name=node.output[0]).type.tensor_type.elem_type = 1
    return True


def read_by_another(graph: GraphProto, random: Random) -> bool:
    """Let a node outside of the form read an inner value."""
    node = _node(graph, random)
    if node is None:
        return False
    graph.node.append(helper.make_node("Neg", [node.output[0]], ["outside"]))
    graph.output.add(name="outside").type.tensor_type.elem_type = 1
    return True


def through_float16(graph: GraphProto, random: Random) -> bool:
    """Round an inner value to float16."""
    place = int(random.integers(len(graph.node)))
    node = graph.node[place]
    nodes = list(graph.node)
    narrow = helper.make_node("Cast", [node.input[0]], ["narrow"], to=10)
    wide = helper.make_node("Cast", ["narrow"], ["wide"], to=1)
    if any(tensor.name == node.input[0] and tensor.data_type != 1 for tensor in graph.initializer):
        return False
    node.input[0] = "wide"
    nodes[place:place] = [narrow, wide]
    copies = [NodeProto.FromString(each.SerializeToString()) for each in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return True


def constant_at_run_time(graph: GraphProto, random: Random) -> bool:
    """Make a constant an input of the model."""
    place = _constant(graph, random)
    if place is None:
        return False
    tensor = graph.initializer[place]
    graph.input.append(helper.make_tensor_value_info(tensor.name, 1, list(tensor.dims)))
    RUN_TIME[tensor.name] = numpy_helper.to_array(tensor)
    del graph.initializer[place]
    return True


RUN_TIME: dict[str, np.ndarray] = {}
"""Values for a constant that became an input."""

CHANGES: Sequence[Callable[[GraphProto, Random], bool]] = (
    nothing, another_operator, operands_swapped, another_value, another_number, another_shape, no_dimensions_kept,
    other_axes, all_axes, read_outside, read_by_another, through_float16, constant_at_run_time,
)  # fmt: skip


def case(seed: int) -> tuple[ModelProto, list[str], dict[str, np.ndarray]] | None:
    """A model of several changed forms, the changes, and values for its inputs; None if the model is not valid."""
    random = np.random.default_rng(seed)
    opset = int(random.choice(OPSETS))
    form = FORMS[random.integers(len(FORMS))]
    whole: ModelProto | None = None
    told, feeds = [f"opset {opset}"], dict[str, np.ndarray]()
    for block in range(BLOCKS):
        # Mostly one form several times, so that the memo meets forms that differ only in the change.
        form = form if random.integers(3) else FORMS[random.integers(len(FORMS))]
        model = spelled(form, random)
        RUN_TIME.clear()
        for _ in range(int(random.integers(1, 3))):
            change = CHANGES[random.integers(len(CHANGES))]
            if change(model.graph, random):
                told.append(f"{form.name}: {change.__name__}")
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        try:
            inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
            del model.graph.output[:]
            model.graph.output.extend(inferred.graph.output)
            checker.check_model(model)
            model = reducelower.convert_version(model, opset)
        except Exception:  # a model without valid shapes is no test
            return None
        scale = float(random.choice([1e-3, 1.0, 30.0]))
        data = model.graph.input[0].name
        feeds[f"b{block}_{data}"] = (random.normal(0.2, 1, SHAPE) * scale).astype(np.float32)
        feeds |= {f"b{block}_{name}": value for name, value in RUN_TIME.items()}
        prefixed = compose.add_prefix(model, f"b{block}_")
        if whole is None:
            whole = prefixed
        else:
            whole.graph.MergeFrom(prefixed.graph)
    assert whole is not None
    if random.integers(2):
        try:
            whole = shape_inference.infer_shapes(whole)
        except Exception:
            return None
    return whole, told, feeds


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    """The outputs of a model without optimizations."""
    session = unoptimized(model)
    read = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: value for name, value in feeds.items() if name in read}))


def wrong(model: ModelProto, feeds: dict[str, np.ndarray]) -> tuple[str, Counter[str]]:
    """What is wrong after a raise, if anything, and the operators that were raised."""
    raised = raise_with_plan(model)
    kinds = Counter(site.op_type for site in raised.plan.sites)
    if not kinds:
        return "", kinds
    try:
        checker.check_model(model, full_check=True)
        before = run(model, feeds)
    except Exception:  # the runtime refuses the changed form
        return "", Counter()
    try:
        checker.check_model(raised.model, full_check=True)
    except Exception as error:
        return f"invalid: {error}", kinds
    says = _unlike(model, before, run(raised.model, feeds))
    if says:  # if digits cancel, kernels may differ; onnx's own evaluator must show it too
        by_reference = (ReferenceEvaluator(each).run(None, feeds) for each in (model, raised.model))
        says = _unlike(model, *by_reference)
    return says, kinds


def _unlike(model: ModelProto, before: Sequence[Any], after: Sequence[Any]) -> str:
    for wanted, found, value in zip(before, after, model.graph.output, strict=True):
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            return f"{value.name}: {found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
        finite = np.isfinite(wanted)
        size = max(1.0, float(np.abs(wanted[finite]).max(initial=0)))
        if not np.allclose(found[finite], wanted[finite], rtol=2e-3, atol=2e-4 * size):
            return f"{value.name}: off by {np.abs(found[finite] - wanted[finite]).max()} of {size}"
    return ""


def main() -> None:
    """Try as many models as requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    tried, raised = 0, Counter[str]()
    for seed in range(options.seed, options.seed + options.count):
        made = case(seed)
        if made is None:
            continue
        model, told, feeds = made
        says, kinds = wrong(model, feeds)
        tried += 1
        raised += kinds
        if says:
            print(f"seed {seed}: {says}; {told}; raised {dict(kinds)}", flush=True)
    print(f"{tried} models, raised {dict(raised)}")


if __name__ == "__main__":
    main()
