"""Axes in every form: constant, computed, dynamic, overridable, shared."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tools.fuzz.reductions.graphs import Graph, Value, constant

__all__ = ["axes_input", "draw_axes"]


def _fit(axes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether axes are valid for a shape."""
    rank = len(shape)
    lowest = 0 if 0 in shape else -rank
    return all(lowest <= axis < rank for axis in axes) and len({axis % rank for axis in axes}) == len(axes)


def draw_axes(graph: Graph, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Axes for a shape, also negative ones if the opset allows them."""
    world = graph.world
    rank = len(shape)
    chosen = world.draw(st.lists(st.integers(0, rank - 1), unique=True, max_size=rank)) if rank else []
    # onnxruntime yields a wrong shape for negative axes if a dimension is empty.
    if world.opset < 11 or 0 in shape:
        return tuple(chosen)
    return tuple(axis - rank if world.flip() else axis for axis in chosen)


def axes_input(graph: Graph, data: Value) -> tuple[str, tuple[int, ...]]:
    """A value with axes for some data: its name, and the axes."""
    world = graph.world
    shared = [(name, axes) for name, axes in graph.known_axes() if _fit(axes, data.shape)]
    if shared and world.flip():
        return world.pick(shared)
    axes = draw_axes(graph, data.shape)
    array = np.array(axes, np.int64)
    how = world.pick(["constant", "constant", "computed", "computed", "dynamic", "overridable"])
    if graph.root.is_function and how in ("dynamic", "overridable"):
        how = "computed"
    if how == "constant":
        name = constant(graph, array)
    elif how == "computed":
        name = _computed(graph, array, data)
    else:
        name = _from_caller(graph, array, has_default=how == "overridable")
    home = graph.root if how in ("dynamic", "overridable") else graph
    home.axes.append((name, axes))
    return name, axes


def _from_caller(graph: Graph, array: np.ndarray, *, has_default: bool) -> str:
    world = graph.world
    name = world.fresh()
    size = len(array) if has_default or world.flip() else "K" + name
    world.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, [size]))
    if has_default:
        graph.root.initializers.append(numpy_helper.from_array(array, name))
    if not has_default or world.flip():
        world.feeds[name] = array
    return name


def _computed(graph: Graph, array: np.ndarray, data: Value) -> str:
    world = graph.world
    forms = ["Identity", "Neg", "Add", "Concat", "Cast", "rank", "Reshape", "Gather"]
    form = world.pick(forms)
    if form == "Identity":
        return graph.add("Identity", [constant(graph, array)])
    if form == "Neg":
        return graph.add("Neg", [constant(graph, -array)])
    if form == "Add":
        one = np.array([1], np.int64)
        return graph.add("Add", [constant(graph, array - 1), constant(graph, one)])
    if form == "Concat":
        at = world.draw(st.integers(0, len(array)))
        return graph.add("Concat", [constant(graph, array[:at]), constant(graph, array[at:])], axis=0)
    if form == "Cast":
        return graph.add("Cast", [constant(graph, array.astype(np.int32))], to=TensorProto.INT64)
    if form == "rank":
        rank = graph.add("Shape", [graph.add("Shape", [data.name])])
        return graph.add("Sub", [rank, constant(graph, np.array(len(data.shape), np.int64) - array)])
    if form == "Reshape":
        return graph.add("Reshape", [constant(graph, array.reshape(-1, 1)), constant(graph, np.array([len(array)]))])
    table = np.array([*range(-4, 4)], np.int64)
    return graph.add("Gather", [constant(graph, table), constant(graph, array + 4)], axis=0)
