"""Small models, and what runtimes make of them before and after conversion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

import reducelower
from tools.sessions import default_session, unoptimized

Feeds = Mapping[str, Any]


def model(
    graph: str, opset: int = 18, ir_version: int = 8, functions: str = "", *, imports: str = "", **held: Any
) -> ModelProto:
    """A model in ONNX text.

    Args:
        graph: inputs, outputs, initializers and nodes, with or without the name of the graph.
        opset: the opset version.
        ir_version: the IR version.
        functions: functions, of the domain local if nothing else is imported.
        imports: versions of other domains.
        held: values of further initializers.
    """
    others = imports or ('"local": 1' if functions else "")
    head = f'<ir_version: {ir_version}, opset_import: ["": {opset}{others and ", "}{others}]>'
    made = parser.parse_model(f"{head} {'g ' if graph.lstrip().startswith('(') else ''}{graph} {functions}")
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in held.items())
    return made


def model_of(
    nodes: Sequence[NodeProto],
    feeds: Feeds,
    opset: int,
    *,
    outputs: Sequence[str] = ("y",),
    constants: Feeds | None = None,
    ranked: Iterable[str] = (),
) -> ModelProto:
    """A model whose inputs have the types of the feeds; of those `ranked` only the rank is stated."""
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(value.dtype),
            [f"{name}_{axis}" for axis in range(value.ndim)] if name in set(ranked) else value.shape,
        )
        for name, value in feeds.items()
    ]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", inputs, [], initializer=held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    known = {value.name: value for value in infer_shapes(made).graph.value_info}
    for name in outputs:
        if name in known and known[name].type.tensor_type.HasField("shape"):
            made.graph.output.append(known[name])
        else:
            # What inference does not know is what the run says.
            made.graph.output.add(name=name)
            value = run(made, feeds)[len(made.graph.output) - 1]
            made.graph.output[-1].CopyFrom(
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
            )
    return made


def one(
    op_type: str,
    feeds: Feeds,
    opset: int,
    *,
    outputs: Sequence[str] = ("y",),
    constants: Feeds | None = None,
    inputs: Sequence[str] | None = None,
    ranked: Iterable[str] = (),
    **attributes: Any,
) -> ModelProto:
    """A model of one node, which reads the feeds and then the constants unless its inputs are given."""
    names = list(inputs) if inputs is not None else [*feeds, *(constants or {})]
    node = helper.make_node(op_type, names, outputs, name="node", **attributes)
    return model_of(
        [node], feeds, opset, outputs=[name for name in outputs if name], constants=constants, ranked=ranked
    )


def run(made: ModelProto, feeds: Feeds, *, optimizes: bool = False) -> list[Any]:
    """What onnxruntime yields; nothing is optimized, so that every node runs as written, unless it `optimizes`."""
    session = default_session(made) if optimizes else unoptimized(made)
    return list(session.run(None, dict(feeds)))


def yields(made: ModelProto, feeds: Feeds) -> list[Any]:
    """What a model yields for those feeds that it takes, in onnx's evaluator where onnxruntime has no kernels."""
    taken = {value.name: feeds[value.name] for value in made.graph.input if value.name in feeds}
    opset = next(entry.version for entry in made.opset_import if entry.domain in ("", "ai.onnx"))
    if 7 <= opset <= 26 and not {value.dtype.name for value in taken.values()} & {"uint32", "uint64", "bfloat16"}:
        return run(made, taken)
    return [np.asarray(value) for value in ReferenceEvaluator(made).run(None, taken)]


def converted(made: ModelProto, target: int, **settings: Any) -> ModelProto:
    """The model at another opset version, which the full checker passes."""
    result = reducelower.convert_version(made, target, **settings)
    onnx.checker.check_model(result, full_check=True)
    return result


def assert_same(made: ModelProto, feeds: Feeds, target: int, *expected: Any) -> ModelProto:
    """Convert, run, and compare with what is expected: what the source yields where nothing is given."""
    result = converted(made, target)
    for want, got in zip(expected or run(made, feeds), run(result, feeds), strict=True):
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return result


def refusal(made: ModelProto, target: int) -> str:
    """Why the model is not converted; fails where it is."""
    try:
        reducelower.convert_version(made, target)
    except reducelower.ConversionError as error:
        return str(error)
    raise AssertionError(f"it was converted to {target}")


def operators(made: ModelProto) -> list[str]:
    """The operators of the main graph, in order."""
    return [node.op_type for node in made.graph.node]


def everywhere(made: ModelProto) -> set[str]:
    """The operators of all graphs and functions."""
    found, holders = set(), [made.graph, *made.functions]
    for holder in holders:
        found |= {node.op_type for node in holder.node}
        holders += [given.g for node in holder.node for given in node.attribute if given.HasField("g")]
    return found


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Normally distributed float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def int64s(*values: int) -> np.ndarray:
    """A list of int64 numbers."""
    return np.array(values, np.int64)
