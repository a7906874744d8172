"""When a rule is tried for a node, and what comes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from reducelower.errors import RefusedError
from reducelower.model.schemas import schema, versions

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["NeedsBodyError", "Occasion", "Way", "Written"]

Way: TypeAlias = Literal["below", "from", "absent", "lacking", "called", "body"]

_OCCASION = re.compile(r"(below|from|absent|lacking|called)(?: (?:as of )?(\w+))?(?: if (.+))?", re.DOTALL)


@dataclass(frozen=True)
class Occasion:
    """When something is tried: in which direction, at which boundary, and under which guard.

    A ``body``, which a rule book has for an operator, is tried if the operator must not remain.
    """

    way: Way
    at: str
    guard: str = ""

    @classmethod
    def of(cls, text: str) -> Occasion:
        """Read an occasion.

        Raises:
            ValueError: the text is no occasion; the message says why.
        """
        match = _OCCASION.fullmatch(text.strip())
        if match is None or (match[1] in ("below", "from") and not match[2]):
            ways = "'below N', 'from N', 'absent', 'lacking' nor 'called'"
            raise ValueError(f"{text!r} says neither {ways}, with 'if' and a guard behind it")
        way: Any = match[1]
        return cls(way, match[2] or "", " ".join((match[3] or "").split()))

    def is_at(self, op_type: str, way: Way, boundary: int) -> bool:
        """Whether it is of a way, and at a boundary; 0 for any boundary."""
        return self.way == way and boundary in (0, self.boundary(op_type))

    def boundary(self, op_type: str) -> int:
        """The opset version of the boundary, or of the nodes that it serves; 0 if these may be of any version."""
        return int(self.at or 0) if not self.at or self.at.isdigit() else _version_with_attribute(op_type, self.at)


@cache
def _version_with_attribute(op_type: str, name: str) -> int:
    """The first opset version at which an operator has an attribute; 0 if there is none."""
    for version in versions(op_type):
        operator = schema(op_type, version)
        if operator is not None and name in operator.attributes:
            return version
    return 0


class Written(NamedTuple):
    """What a rule writes in place of a node.

    Attributes:
        nodes: the nodes.
        opset: the opset version that they are written for.
        label: for reports; empty if the occasion says it all.
    """

    nodes: list[NodeProto]
    opset: int
    label: str = ""


class NeedsBodyError(RefusedError):
    """A node cannot cross a boundary as it is, but the simpler operators in its body may.

    In text it is a rule whose only node is ``ItsBody <reason, hint>``. They say why the node is refused if nothing can
    expand it, and what a user can do about that.

    Attributes:
        opset: the opset version that the node is written for.
    """

    def __init__(self, reason: str, hint: str, opset: int) -> None:
        super().__init__(reason, hint)
        self.opset = opset
