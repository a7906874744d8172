"""Plant faults in several forms of one model: after a raise, it must compute the same as before.

python -m tools.perturbed --seed 0 --count 1000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, checker, compose, helper, numpy_helper, shape_inference

import reducelower
from reducelower.recompose import raise_with_plan
from reducelower.recompose.expressions import Form, forms_of, written_operators
from tools.fuzz.comparing import difference
from tools.fuzz.runtimes import RUNTIMES, run
from tools.spelled import LAST, SHAPE, Written, choices, values
from tools.verification.faults import plant

__all__ = ["case", "wrong"]

FORMS = [form for op_type in written_operators() for form in forms_of(op_type) if not form.is_reduction]
OPSETS = (13, 17, 18, 20, 21, 23)
BLOCKS = 3
"""Forms in one model."""

FAULTS = (
    "another input", "axes as an input", "constant negated", "constant off by a hundredth", "function of one value",
    "greatest for least", "keepdims", "maximum for mean", "mean for sum", "operands exchanged", "product for quotient",
    "scalar off by a tenth", "sum for difference", "through float16",
)  # fmt: skip
"""Kinds of faults, of which a form has one or two; it also gets some of the `CHANGES`."""

Random = np.random.Generator


def spelled(form: Form, random: Random) -> ModelProto:
    """A form in one of its ways of writing, with its data as an input."""
    axes = (2,) if form.op_type == "GroupNormalization" else (-1,)
    ways, inputs = list(choices(form, 12)), values(form, axes)
    if "group_shape" in inputs:
        inputs["group_shape"] = np.array([SHAPE[0], 3, -1], np.int64)
    return Written(form, ways[random.integers(len(ways))], inputs).model


# Changes of what is around the nodes of a form; the values are those of a constant that becomes an input.


def _constant(graph: GraphProto, random: Random) -> int | None:
    places = [place for place, tensor in enumerate(graph.initializer) if tensor.data_type == 1]
    return places[random.integers(len(places))] if places else None


def another_shape(graph: GraphProto, random: Random) -> Mapping[str, np.ndarray]:
    """Broadcast a constant to another shape, with other numbers in it."""
    shapes = [(1,), (1, 1), (LAST,), (SHAPE[1], 1), (SHAPE[0], 1, 1), (1, 1, 1), (1, 1, 1, 1), SHAPE, (SHAPE[1], LAST)]
    place = _constant(graph, random)
    if place is not None:
        tensor, shape = graph.initializer[place], shapes[random.integers(len(shapes))]
        first = numpy_helper.to_array(tensor).reshape(-1)[0]
        value = np.full(shape, first) * (1 if random.integers(2) else random.normal(1, 0.3, shape))
        tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float32), tensor.name))
    return {}


def all_axes(graph: GraphProto, random: Random) -> Mapping[str, np.ndarray]:
    """Change the axes of all reductions."""
    axes = [[-1], [1], [0], [1, 2], [2], [0, 1, 2], [-2], [2, 1]][random.integers(8)]
    graph.initializer.append(numpy_helper.from_array(np.array(axes, np.int64), "all_axes"))
    for node in graph.node:
        if node.op_type.startswith("Reduce") and len(node.input) > 1:
            node.input[1] = "all_axes"
    return {}


def read_outside(graph: GraphProto, random: Random) -> Mapping[str, np.ndarray]:
    """Make an inner value an output as well."""
    node = graph.node[random.integers(len(graph.node))]
    if node.output[0] != graph.output[0].name:
        graph.output.add(name=node.output[0]).type.tensor_type.elem_type = 1
    return {}


def constant_at_run_time(graph: GraphProto, random: Random) -> Mapping[str, np.ndarray]:
    """Make a constant an input of the model."""
    place = _constant(graph, random)
    if place is None:
        return {}
    tensor = graph.initializer.pop(place)
    graph.input.append(helper.make_tensor_value_info(tensor.name, 1, list(tensor.dims)))
    return {tensor.name: numpy_helper.to_array(tensor)}


CHANGES: Sequence[Callable[[GraphProto, Random], Mapping[str, np.ndarray]]] = (
    another_shape, all_axes, read_outside, constant_at_run_time,
)  # fmt: skip


def case(seed: int) -> tuple[ModelProto, list[str], dict[str, np.ndarray]] | None:
    """A model of several changed forms, the changes, and values for its inputs; None if the model is not valid."""
    random = np.random.default_rng(seed)
    opset = int(random.choice(OPSETS))
    form = FORMS[random.integers(len(FORMS))]
    whole: ModelProto | None = None
    told, feeds = [f"opset {opset}"], dict[str, np.ndarray]()
    for block in range(BLOCKS):
        # Mostly one form several times, with different changes.
        form = form if random.integers(3) else FORMS[random.integers(len(FORMS))]
        changed = _changed(form, random, told)
        try:
            model = reducelower.convert_version(_inferred(changed[0]), opset)
        except Exception:  # a model without valid shapes is no test
            return None
        scale = float(random.choice([1e-3, 1.0, 30.0]))
        data = (random.normal(0.2, 1, SHAPE) * scale).astype(np.float32)
        fed = {model.graph.input[0].name: data, **changed[1]}
        feeds |= {f"b{block}_{name}": value for name, value in fed.items()}
        prefixed = compose.add_prefix(model, f"b{block}_")
        if whole is None:
            whole = prefixed
        else:
            whole.graph.MergeFrom(prefixed.graph)
    assert whole is not None
    return (shape_inference.infer_shapes(whole) if random.integers(2) else whole), told, feeds


def _changed(form: Form, random: Random, told: list[str]) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A form with up to two changes, and values for the inputs that they add."""
    model, fed = spelled(form, random), dict[str, np.ndarray]()
    for _ in range(int(random.integers(3))):
        if random.integers(2):
            fault = str(random.choice(FAULTS))
            model, where = plant(model, fault, int(random.integers(1 << 30)))
            told.append(f"{form.name}: {fault} {where}")
        else:
            change = CHANGES[random.integers(len(CHANGES))]
            fed |= change(model.graph, random)
            told.append(f"{form.name}: {change.__name__}")
    return model, fed


def _inferred(model: ModelProto) -> ModelProto:
    """The model with the types of its outputs as its nodes give them."""
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    outputs = shape_inference.infer_shapes(model, check_type=True, strict_mode=True).graph.output
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    checker.check_model(model)
    return model


def wrong(model: ModelProto, feeds: dict[str, np.ndarray]) -> tuple[str, Counter[str]]:
    """What is wrong after a raise, if anything, and the operators that were raised."""
    raised = raise_with_plan(model)
    kinds = Counter(site.op_type for site in raised.plan.sites)
    if not kinds or run("onnxruntime", model, feeds).values is None:
        return "", Counter()  # the runtime refuses the changed form
    try:
        checker.check_model(raised.model, full_check=True)
    except Exception as error:
        return f"invalid: {error}", kinds
    # If digits cancel, kernels may differ; onnx's own evaluator must show it too.
    says = [_unlike(*(run(runtime, each, feeds).values for each in (model, raised.model))) for runtime in RUNTIMES]
    return says[0] if all(says) else "", kinds


def _unlike(before: Sequence[Any] | None, after: Sequence[Any] | None) -> str:
    """How results differ where those of the source are finite; a raise may keep more of them so."""
    if before is None or after is None:
        return "it does not run"
    for wanted, found in zip(before, after, strict=True):
        same_shape = found if found.shape != wanted.shape else np.where(np.isfinite(wanted), found, wanted)
        says = difference(wanted, same_shape, relative=2e-3)
        if says:
            return says
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
