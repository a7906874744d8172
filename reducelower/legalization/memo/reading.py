"""Split a node into its names and everything else, and the reverse: write nodes with other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from onnx import NodeProto

from reducelower.model.columns import message_class
from reducelower.model.graph import may_hold_graphs
from reducelower.scope.blanks import MARKS, NAME_BLANK, blanks

__all__ = ["Key", "ReadNode", "Template", "read_node"]

Key: TypeAlias = "tuple[int, tuple[int, ...], bool, bytes]"
"""What decides how a node is treated, beside the surroundings: the number of inputs, the operand number of each input
and output, whether it has a name, and the bytes of operator, attributes and domain. Operands are numbered in order of
appearance; -1 is an omitted one."""


class ReadNode(NamedTuple):
    """A node, split.

    Attributes:
        names: its distinct operands, inputs before outputs; then its name.
        marks: bytes of doc string and metadata, which go to the node that computes the first output.
    """

    names: list[bytes]
    key: Key
    marks: bytes

    def operands(self) -> dict[str, tuple[int, str]]:
        """Number and name of each operand, by its blank."""
        names = enumerate(map(bytes.decode, self.names[:-1]))
        return dict(zip(blanks(len(self.names) - 1), names, strict=True))

    def real_names(self) -> dict[str, str]:
        """The names by their blanks."""
        return dict(zip((*blanks(len(self.names) - 1), NAME_BLANK), map(bytes.decode, self.names), strict=True))

    def in_blanks(self) -> NodeProto:
        """The node with blanks for its names."""
        inputs, places, has_name, rest = self.key
        node = NodeProto.FromString(rest)
        operands = (*blanks(len(self.names) - 1), "")
        names = [*map(operands.__getitem__, places)]  # the place of an omitted one is -1
        node.input.extend(names[:inputs])
        node.output.extend(names[inputs:])
        if has_name:
            node.name = NAME_BLANK
        node.doc_string = MARKS
        # Both spellings of the default domain become one.
        if node.domain == "ai.onnx":
            node.ClearField("domain")
        return node


_Parts = message_class("NodeInParts")
"""A node whose names are fields, and all that decides how it is treated is not."""

_ALL_DIFFERENT = [tuple(range(count)) for count in range(16)]
"""The places of operands that are all different, by their number."""


def read_node(data: bytes) -> ReadNode:
    """Split a serialized node."""
    node = _Parts.FromString(data)
    names, name = node.field_1[:], node.field_3
    inputs = len(names)
    names += node.field_2[:]
    node.ClearField("field_1")
    node.ClearField("field_2")
    node.ClearField("field_3")
    rest, marks = node.SerializeToString(), b""
    if node.field_6 or node.field_9:
        node.ClearField("field_6")
        node.ClearField("field_9")
        whole, rest = rest, node.SerializeToString()
        marks = whole.removesuffix(rest)  # fields that the class does not declare come last
    places = _ALL_DIFFERENT[len(names)] if len(names) < len(_ALL_DIFFERENT) else tuple(range(len(names)))
    if len({*names, b""}) <= len(names):  # two are equal, or one is omitted
        numbers: dict[bytes, int] = {}
        places = tuple([numbers.setdefault(each, len(numbers)) if each else -1 for each in names])
        names = list(numbers)
    names.append(name)
    return ReadNode(names, (inputs, places, bool(name), rest), marks)


class Template:
    """What is the same for all nodes with an outcome, in any graph of any model: the reverse of `read_node`.

    Attributes:
        is_bytes: whether the nodes can be written as bytes: none has subgraphs.
    """

    def __init__(self, nodes: Sequence[NodeProto], texts: Sequence[str]) -> None:
        """Take apart the nodes of an outcome; `texts` are the blanks, in the order of the texts that fill them."""
        named = {name for node in nodes for name in (*node.input, *node.output, node.name)}
        self._fixed = sorted(named.difference(texts))
        numbers = dict(zip((*texts, *self._fixed), count()))
        self.is_bytes = not any(map(may_hold_graphs, nodes))
        self._nodes = [_taken_apart(node, numbers) for node in nodes] if self.is_bytes else []

    def fill(self, texts: Sequence[bytes]) -> list[bytes]:
        """The nodes with these texts in their blanks."""
        texts = (*texts, *map(str.encode, self._fixed)) if self._fixed else texts
        written = []
        for node, inputs, outputs, name, marks in self._nodes:
            node.field_1[:] = map(texts.__getitem__, inputs)
            node.field_2[:] = map(texts.__getitem__, outputs)
            if name is not None:
                node.field_3 = texts[name]
            data = node.SerializeToString()
            written.append(data if marks is None else data + texts[marks])
        return written


def _taken_apart(
    node: NodeProto, numbers: Mapping[str, int]
) -> tuple[Any, list[int], list[int], int | None, int | None]:
    """A node without its names, the numbers of its names, and that of its marks if it has them."""
    inputs, outputs = list(map(numbers.__getitem__, node.input)), list(map(numbers.__getitem__, node.output))
    parts = _Parts.FromString(node.SerializeToString())
    for apart in ("field_3", "field_6"):  # an empty text is not no text
        parts.ClearField(apart)
    marks = numbers[MARKS] if node.doc_string == MARKS else None
    return parts, inputs, outputs, numbers[node.name] if node.name else None, marks
