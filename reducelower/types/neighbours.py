"""Element types of values that follow from the other inputs and outputs of their readers."""

from __future__ import annotations

from collections.abc import Callable

from reducelower.model.element_types import formal_at, only_element_type
from reducelower.model.schemas import DEFAULT_DOMAINS, schema
from reducelower.types.graphs import Graph

__all__ = ["element_type_by_readers"]


def element_type_by_readers(home: Graph, name: str, element_type: Callable[[str], int]) -> int:
    """The element type that a value must have because other inputs or outputs of a reader share it; 0 if unknown.

    `element_type` returns the element type of another value of the graph.
    """
    for reader in home.readers(name):
        operator = schema(reader.op_type, home.opset) if reader.domain in DEFAULT_DOMAINS else None
        formal = None if operator is None else formal_at(operator.inputs, list(reader.input).index(name))
        if operator is None or formal is None:
            continue
        if only := only_element_type(formal):
            return only
        if formal.type_str.startswith(("seq", "optional")):
            continue  # such a variable says nothing about tensors
        formals = [
            *((other, formal_at(operator.inputs, at)) for at, other in enumerate(reader.input)),
            *((other, formal_at(operator.outputs, at)) for at, other in enumerate(reader.output)),
        ]
        for other, alike in formals:
            is_alike = other not in ("", name) and alike is not None and alike.type_str == formal.type_str
            answer = element_type(other) if is_alike else 0
            if answer:
                return answer
    return 0
