"""Models that write an operator with others, made from its forms, and its result in exact arithmetic or numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.recompose.expressions import AnyOf, Application, Expression, Form, Literal, Variable
from tools.exact.normalizations import exact_normalization

SHAPE = (2, 6, 4)
CHANNELS, LAST, EPSILON = 6, 4, 0.01


def values(form: Form, axes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """A value for every input of a form, such that the form equals the operator."""
    random = np.random.default_rng(3)
    by_channel = form.op_type == "GroupNormalization"
    vector = (CHANNELS, 1) if by_channel else (LAST,)
    known: dict[str, Any] = {
        "axes": np.array(axes, np.int64),
        "epsilon": np.float32(EPSILON),
        "group_shape": np.array([0, 3, -1], np.int64),
        "shape": np.array(SHAPE, np.int64),
        "ones": np.ones(3, np.float32),
        "zeros": np.zeros(3, np.float32),
    }
    for name in ("Scale", "scale", "B", "bias"):
        known[name] = random.normal(1, 0.3, vector).astype(np.float32)
    known[form.inputs[0]] = random.normal(0.5, 1, SHAPE).astype(np.float32)
    # Sums are over one axis, or for groups over the numbers of two channels.
    known["count"] = np.float32(2 * LAST if form.op_type == "GroupNormalization" else LAST)
    known["share"] = np.float32(1 / known["count"])
    return {name: np.asarray(known[name]) for name in form.inputs}


def choices(form: Form, most: int) -> Iterator[dict[int, int]]:
    """Ways to write a form; each alternative of each helper occurs in one of them."""
    places = list(_alternatives(form.result))
    for attempt in range(most):
        yield {id(place): attempt % len(place.alternatives) for place in places}


def _alternatives(expression: Expression) -> Iterator[AnyOf]:
    if isinstance(expression, AnyOf):
        yield expression
        for way in expression.alternatives:
            yield from _alternatives(way)
    elif isinstance(expression, Application):
        for operand in expression.operands:
            yield from _alternatives(operand)


class Written:
    """A model with one way to write a form, at opset 23.

    Attributes:
        model: the model; its only input is the data.
        used: the inputs of the form that it reads.
    """

    def __init__(self, form: Form, choice: dict[int, int], inputs: dict[str, np.ndarray]) -> None:
        self.form, self.choice, self.inputs = form, choice, dict(inputs)
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.used: set[str] = set()
        self.names: dict[int, str] = {}
        output = self.name_of(form.result)
        data = form.inputs[0]
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info(data, TensorProto.FLOAT, SHAPE)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, SHAPE)],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        self.model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)

    def name_of(self, expression: Expression) -> str:
        """The name of an expression in the model."""
        if isinstance(expression, AnyOf):
            return self.name_of(expression.alternatives[self.choice[id(expression)]])
        if isinstance(expression, Variable):
            self.used.add(expression.name)
            if expression.name != self.form.inputs[0]:
                self.constants[expression.name] = self.inputs[expression.name]
            return expression.name
        if isinstance(expression, Application) and expression.op_type == "Cast":
            return self.name_of(expression.operands[0])  # for float, widening and narrowing do nothing
        if id(expression) not in self.names:
            self.names[id(expression)] = f"v{len(self.names)}"
            name = self.names[id(expression)]
            if isinstance(expression, Literal):
                self.constants[name] = np.array(expression.value, np.float32)
            else:
                self._node(expression, name)
        return self.names[id(expression)]

    def _node(self, expression: Application, name: str) -> None:
        attributes = {
            key: EPSILON if isinstance(value, Variable) else value for key, value in expression.attributes.items()
        }
        operands = [self.name_of(operand) for operand in expression.operands]
        self.nodes.append(helper.make_node(expression.op_type, operands, [name], **attributes))


def right(form: Form, axes: tuple[int, ...], written: Written) -> np.ndarray:
    """The result of the operator."""
    inputs = written.inputs
    data = inputs[form.inputs[0]]
    if form.op_type == "Gelu":
        if form.attributes["approximate"]:
            inner = math.sqrt(2 / math.pi) * (data + 0.044715 * data.astype(np.float64) ** 3)
            return np.asarray(data / 2 * (1 + np.tanh(inner)))
        return np.asarray(data / 2 * (1 + np.vectorize(math.erf)(data / math.sqrt(2))))
    epsilon = float(np.float32(EPSILON))
    attributes: dict[str, Any] = {
        "GroupNormalization": {"num_groups": 3, "epsilon": epsilon},
        "LayerNormalization": {"axis": axes[0], "epsilon": epsilon},
        "RMSNormalization": {"axis": axes[0], "epsilon": epsilon},
        "LpNormalization": {"axis": axes[0], "p": form.attributes.get("p")},
    }.get(form.op_type, {"axis": axes[0]})
    vectors = {
        "LayerNormalization": ("Scale", "B"),
        "RMSNormalization": ("scale",),
    }
    names = vectors.get(form.op_type, ("scale", "bias") if form.op_type == "GroupNormalization" else ())
    operands = [data]
    for name, neutral in zip(names, (1.0, 0.0), strict=False):
        value = inputs[name] if name in written.used else np.full_like(inputs[name], neutral)
        operands.append(value.reshape(value.shape[0]))
    return exact_normalization(form.op_type, operands, attributes).astype(np.float64)
