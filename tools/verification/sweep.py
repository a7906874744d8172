"""Change one thing in onnx's own node cases and count what `verify` finds: `python -m tools.verification.sweep`.

An attribute gets a value next to its own, or one from another case of the operator; an optional input is dropped; two
inputs are exchanged; a constant is off by one. Both models run on the case's own inputs, which shows whether values
change.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from reducelower.numerics.measure import Array
from reducelower.verification import verify
from tools.node_cases import Case, cases
from tools.sessions import unoptimized

__all__ = ["changed", "verdicts_of"]

_MOST = 3  # cases of an operator to try one change on
_SECONDS = 120
_OPEN = frozenset(
    {"Bernoulli", "Loop", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


@cache
def _seen() -> Mapping[tuple[str, str], list[AttributeProto]]:
    """The values of each attribute in all cases, by operator and name."""
    values_of: defaultdict[tuple[str, str], dict[bytes, AttributeProto]] = defaultdict(dict)
    for case in cases():
        for node in case.model.graph.node:
            for item in node.attribute:
                if item.type not in (AttributeProto.GRAPH, AttributeProto.TENSOR):
                    values_of[node.op_type, item.name][item.SerializeToString()] = item
    return {key: list(values.values()) for key, values in values_of.items()}


def changed(model: ModelProto, opset: int) -> Iterator[tuple[str, ModelProto]]:
    """The models with one thing changed, and the change."""
    (node,) = model.graph.node
    schema = defs.get_schema(node.op_type, opset, "")
    stated = {item.name: item for item in node.attribute}
    for name in schema.attributes:
        own = stated.get(name)
        values = [item for item in _seen().get((node.op_type, name), ()) if item != own]
        default = schema.attributes[name].default_value
        if not all(item.type == AttributeProto.INT and item.i in (0, 1) for item in values):
            values += list(_beside(own if own is not None else default)) if own is not None or default.name else []
        values = [item for item in values if own is not None or item != default]
        for value in [*values, *([None] if own is not None else [])]:
            made = _copied(model)
            kept = [item for item in node.attribute if item.name != name]
            del made.graph.node[0].attribute[:]
            made.graph.node[0].attribute.extend(kept if value is None else [*kept, value])
            text = "the default" if value is None else helper.printable_attribute(value)
            yield f"{name}: {text}", made
    for at, name in enumerate(node.input):
        formal = schema.inputs[min(at, len(schema.inputs) - 1)]
        if name and formal.option == defs.OpSchema.FormalParameterOption.Optional:
            made = _copied(model)
            made.graph.node[0].input[at] = ""
            while made.graph.node[0].input and not made.graph.node[0].input[-1]:
                made.graph.node[0].input.pop()
            yield f"without {formal.name}", made
        if at and name and node.input[at - 1] and name != node.input[at - 1]:
            made = _copied(model)
            swapped = made.graph.node[0].input
            swapped[at - 1], swapped[at] = name, node.input[at - 1]
            yield f"inputs {at - 1} and {at} change places", made
    yield from _constants_changed(model)


def _constants_changed(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    for at, tensor in enumerate(model.graph.initializer):
        value = numpy_helper.to_array(tensor)
        if not value.size or value.dtype.kind not in "biuf":
            continue
        for step in (1, -1) if value.dtype.kind != "b" else (True,):
            other = value.copy()
            with np.errstate(all="ignore"):  # one below zero is the largest number
                other.flat[-1:] = (
                    other.flat[-1:] ^ True if value.dtype.kind == "b" else other.flat[-1:] + _step(value, step)
                )
            made = _copied(model)
            made.graph.initializer[at].CopyFrom(numpy_helper.from_array(other, tensor.name))
            yield f"{tensor.name} off by {step}", made


def _step(value: Array, step: int) -> Array:
    return np.array(step).astype(value.dtype)


def _beside(item: AttributeProto) -> Iterator[AttributeProto]:
    value = helper.get_attribute_value(item)
    if item.type == AttributeProto.INT:
        others = [value + 1, value - 1, -value]
    elif item.type == AttributeProto.FLOAT:
        others = [value * 1.5, value * 1.01, value + 0.5, -value]
    elif item.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        others = [[*value[:at], value[at] + step, *value[at + 1 :]] for at in range(len(value)) for step in (1, -1)]
        others += [value[::-1], value[1:], [*value[1:], *value[:1]]]
    else:
        return
    yield from (helper.make_attribute(item.name, each, attr_type=item.type) for each in others if each != value)


def _copied(model: ModelProto) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(model)
    return made


def _free(model: ModelProto) -> ModelProto:
    """The model without the sizes of its outputs, which may change."""
    made = _copied(model)
    for value in made.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return made


def _results(model: ModelProto, inputs: Mapping[str, Any]) -> list[Any] | None:
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception:
        return None
    for run in (
        lambda: unoptimized(model).run(None, dict(inputs)),
        lambda: ReferenceEvaluator(model).run(None, dict(inputs)),
    ):
        try:
            return list(run())
        except Exception:
            continue
    return None


def _are_same(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(_are_same, left, right))
    one, other = np.asarray(left), np.asarray(right)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind in "OSUb":
        return bool((one == other).all())
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    share = 1e-2 if one.dtype.itemsize < 4 else 1e-4
    return bool(np.allclose(one.astype(wide), other.astype(wide), rtol=share, atol=1e-6, equal_nan=True))


def _symbolic(model: ModelProto) -> ModelProto:
    """The model with a symbol for each size of its inputs; equal sizes get the same symbol."""
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = f"d{dim.dim_value}"
    return model


def verdicts_of(case: Case, *, symbolic: bool = False) -> list[tuple[str, str, str]]:
    """Every change that changes values, with the verdict and why."""
    warnings.simplefilter("ignore")
    source = _symbolic(_free(case.model)) if symbolic else _free(case.model)
    inputs = dict(zip((value.name for value in source.graph.input), case.inputs, strict=False))
    before = _results(source, inputs)
    verdicts: list[tuple[str, str, str]] = []
    for what, made in changed(source, case.opset) if before is not None else ():
        after = _results(made, inputs)
        if before is None or after is None or all(map(_are_same, before, after)):
            continue
        try:
            verification = verify(source, made)
            verdicts.append((what, verification.verdict, str(verification)))
        except Exception as error:
            verdicts.append((what, "crash", f"{type(error).__name__}: {error}"))
    return verdicts


def _one(number: int, symbolic: bool) -> list[tuple[str, str, str]]:
    case = cases()[number]
    faulthandler.dump_traceback_later(_SECONDS, exit=True)  # some changes make a runtime loop forever
    with np.errstate(all="ignore"):
        return verdicts_of(case, symbolic=symbolic)


def main() -> int:
    """Print every change that is not called different; return 1 if one is called equivalent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="comma-separated operators; default: all")
    parser.add_argument("--all", action="store_true", help="every case of an operator, not some")
    parser.add_argument("--symbolic", action="store_true", help="use symbols for the sizes of inputs")
    options = parser.parse_args()
    wanted = set(filter(None, options.ops.split(",")))
    tried: Counter[str] = Counter()
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    verdicts: Counter[str] = Counter()
    for number, case in enumerate(cases()):
        if len(case.model.graph.node) != 1 or case.operator in _OPEN or (wanted and case.operator not in wanted):
            continue
        key = f"{case.operator} {'with constants' if case.name.endswith('_with_constants') else ''}"
        tried[key] += 1
        if tried[key] > _MOST * 4 and not options.all:
            continue
        try:
            changes = pool.submit(_one, number, options.symbolic).result()
        except BrokenProcessPool:
            print(f"died: {case.name}", flush=True)
            pool = ProcessPoolExecutor(1, get_context("spawn"))
            continue
        for what, verdict, text in changes:
            verdicts[verdict] += 1
            if verdict != "different":
                print(f"{verdict}: {case.name}: {what}: {text[:400]}", flush=True)
    print(f"{sum(verdicts.values())} changes of {len(tried)} operators, with and without constants: {dict(verdicts)}")
    return 1 if verdicts["equivalent"] else 0


if __name__ == "__main__":
    sys.exit(main())
