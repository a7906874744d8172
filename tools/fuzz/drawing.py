"""A draft of a random node: its schema gives types and attributes, a recipe makes shapes and values fit together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from onnx import AttributeProto, TensorProto, TypeProto, defs, helper

from reducelower.model.schemas import parse_element_type
from tools.fuzz.values import ELEMENT_TYPES, draw_values, dtype_of

__all__ = ["Draft", "Input", "NotDrawableError", "type_proto"]

_Choice = TypeVar("_Choice")


class NotDrawableError(Exception):
    """This draw failed, for example at an element type for which no value can be made; another draw may succeed."""


@dataclass(frozen=True)
class Input:
    """One input of a node.

    Attributes:
        value: the array, or the arrays of a sequence.
        is_parameter: whether exporters write it as a constant, such as axes; otherwise it is data.
    """

    value: Any
    is_parameter: bool


@dataclass
class Draft:
    """A node being drawn.

    Attributes:
        rng: the source of all choices.
        schema: the operator's schema at the opset version.
        opset: opset version of the model.
        pool: shapes of existing values, to be reused, by element type name.
        edge: whether values are edge values.
        sums: whether the operator sums its inputs.
        types: the type of each type variable, as schemas write it.
        inputs: the inputs, None for one that is left out.
        attributes: attributes by name.
        outputs: number of outputs that a variadic operator has.
    """

    rng: np.random.Generator
    schema: defs.OpSchema
    opset: int
    pool: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    edge: bool = False
    sums: bool = False
    types: dict[str, str] = field(default_factory=dict)
    inputs: list[Input | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1

    def flip(self, chance: float = 0.5) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < chance)

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, choices: Sequence[_Choice]) -> _Choice:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def type_of(self, position: int, among: Collection[str] | None = None) -> int:
        """The element type of an input, chosen for its type variable on the first call."""
        formal = self._formal(position)
        if formal.type_str.startswith("tensor("):
            return parse_element_type(formal.type_str)
        if formal.type_str not in self.types:
            self.types[formal.type_str] = self._draw_type(formal.types, among)
        return parse_element_type(self.types[formal.type_str])

    def output_type(self, variable: str, element_type: int) -> None:
        """Set the type variable of an output that no input has."""
        allowed = next(one for one in self.schema.type_constraints if one.type_param_str == variable)
        name = f"tensor({TensorProto.DataType.Name(element_type).lower()})"
        if name not in allowed.allowed_type_strs:
            raise NotDrawableError(f"{variable} cannot be {name}")
        self.types[variable] = name

    def draw_element_type(self, variable: str, among: Collection[str] | None = None) -> int:
        """An element type that a type variable allows."""
        allowed = next(one for one in self.schema.type_constraints if one.type_param_str == variable)
        return parse_element_type(self._draw_type(allowed.allowed_type_strs, among))

    def _draw_type(self, allowed: Collection[str], among: Collection[str] | None) -> str:
        names = [name for name in ELEMENT_TYPES if f"tensor({name})" in allowed and (among is None or name in among)]
        if not names:
            raise NotDrawableError(f"none of {sorted(allowed)} can be made")
        pooled = [name for name in names if name in self.pool]
        if pooled and self.flip(0.8):
            names = pooled
        weights = np.array([ELEMENT_TYPES[name] for name in names])
        return f"tensor({names[int(self.rng.choice(len(names), p=weights / weights.sum()))]})"

    def _formal(self, position: int) -> Any:
        formals = self.schema.inputs
        if not formals:
            raise NotDrawableError("it has no inputs")
        return formals[min(position, len(formals) - 1)]

    def takes(self, name: str) -> bool:
        """Whether the version has an attribute or input of this name, ignoring case."""
        return name in self.schema.attributes or self._input_named(name) is not None

    def _input_named(self, name: str) -> int | None:
        positions = [index for index, formal in enumerate(self.schema.inputs) if formal.name.lower() == name.lower()]
        return positions[0] if positions else None

    def shape(self, low: int = 0, high: int = 5, *, element_type: int | None = None) -> tuple[int, ...]:
        """A shape with a rank between low and high, sometimes with a size of 0, often that of an existing value."""
        if element_type is not None:
            name = str(TensorProto.DataType.Name(element_type)).lower()
            shapes = [shape for shape in self.pool.get(name, ()) if low <= len(shape) <= high]
            if shapes and self.flip(0.85):
                return self.pick(shapes)
        ranks = [rank for rank in (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5) if low <= rank <= high] or [low]
        sizes = (1, 2, 3, 4, 0) if self.flip(0.12) else (1, 2, 2, 3, 3, 4, 5)
        return tuple(self.pick(sizes) for _ in range(self.pick(ranks)))

    def data(self, position: int, low: int = 0, high: int = 5, among: Collection[str] | None = None) -> np.ndarray:
        """Draw and set an input of any shape between two ranks."""
        element_type = self.type_of(position, among)
        return self.tensor(position, self.shape(low, high, element_type=element_type))

    def tensor(self, position: int, shape: Sequence[int], *, edge: bool | None = None) -> np.ndarray:
        """Draw and set an input of a shape, with the element type of its type variable."""
        edge = self.edge if edge is None else edge
        return self.give(
            position, draw_values(self.rng, self.type_of(position), tuple(shape), edge=edge, sums=self.sums)
        )

    def give(self, position: int, value: Any, *, parameter: bool = False) -> Any:
        """Set an input, and its type variable if that is not set yet."""
        while len(self.inputs) <= position:
            self.inputs.append(None)
        self.inputs[position] = Input(value, parameter)
        return value

    def whole(self, position: int, numbers: Any, *, parameter: bool = True) -> np.ndarray:
        """Set an input of integers, in the type of its type variable, or int64 or int32 if that is not set yet."""
        element_type = self.type_of(position, ("int64", "int32", "int64"))
        return np.asarray(self.give(position, np.asarray(numbers).astype(dtype_of(element_type)), parameter=parameter))

    def state(self, name: str, value: Any) -> bool:
        """Set an attribute, or the input of that name in versions that have one; False if the version has neither."""
        if name in self.schema.attributes:
            self.attributes[name] = value
            return True
        position = self._input_named(name)
        if position is None:
            return False
        formal = self.schema.inputs[position]
        if isinstance(value, np.ndarray):
            self.give(position, value, parameter=True)
        elif "int64" in formal.type_str or isinstance(value, (list, tuple, int)):
            self.whole(position, value)
        else:
            self.give(position, np.asarray(value, dtype_of(self.type_of(position))), parameter=True)
        return True

    def maybe(self, name: str, choices: Sequence[_Choice], default: _Choice) -> _Choice:
        """State one of the values, or none if that is allowed; returns the value in force."""
        required = name in self.schema.attributes and self.schema.attributes[name].required
        position = self._input_named(name)
        if position is not None:
            required = self.schema.inputs[position].option == defs.OpSchema.FormalParameterOption.Single
        if (required or self.flip()) and self.takes(name):
            value = self.pick(choices)
            self.state(name, value)
            return value
        return default

    def axis(self, rank: int) -> int:
        """An axis for data of a rank; negative only if the version accepts that."""
        if not rank:
            raise NotDrawableError("a scalar has no axis")
        return self.integer(-rank if self.opset >= 11 else 0, rank - 1)

    def axes(self, rank: int, *, least: int = 0) -> list[int]:
        """Some different axes for data of a rank."""
        if rank < least:
            raise NotDrawableError("too few axes")
        count = self.integer(least, rank)
        chosen = [int(axis) for axis in self.rng.permutation(rank)[:count]]
        return [axis - rank if self.opset >= 11 and self.flip(0.4) else axis for axis in chosen]

    def fill_attributes(self, values: Callable[[str, str], Sequence[Any]]) -> None:
        """State some of the attributes that the recipe did not set, from a table of values by operator and name."""
        for name, attribute in self.schema.attributes.items():
            choices = values(self.schema.name, name)
            if name in self.attributes or not (attribute.required or self.flip(0.4)):
                continue
            if choices:
                self.attributes[name] = self.pick(choices)
            elif int(attribute.type) == AttributeProto.FLOAT:  # type: ignore[call-overload]
                self.attributes[name] = float(self.integer(1, 12) / 8)
            elif name == "consumed_inputs":
                self.attributes[name] = [0] * max(len(self.inputs), 1)


def type_proto(spelt: str, shape: Sequence[int | str | None] | None = None) -> TypeProto:
    """A type from the text in schemas; the shape is for a plain tensor."""
    for prefix, make in (("seq(", helper.make_sequence_type_proto), ("optional(", helper.make_optional_type_proto)):
        if spelt.startswith(prefix):
            return make(type_proto(spelt[len(prefix) : -1]))
    return helper.make_tensor_type_proto(parse_element_type(spelt), shape)
