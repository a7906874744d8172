"""The result of one node, with blanks for names, so that it can be applied to other nodes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from reducelower.legalization.memo.reading import Template
from reducelower.model import protected
from reducelower.model.attributes import make_node
from reducelower.model.graph import may_hold_graphs, read_by, read_from_outside, walk
from reducelower.model.value_info import NOTHING_STATED, state, stated_type, without_made_up_symbols
from reducelower.scope.blanks import DATA, MARKS, NAME_BLANK, blanks, is_in_blanks
from reducelower.text import one_line
from reducelower.types import infer

if TYPE_CHECKING:
    from reducelower.errors import RefusedError
    from reducelower.scope.blanks import Added
    from reducelower.scope.ground import Stored
    from reducelower.scope.node import NodeScope, Question

__all__ = ["CASTS_BY_NUMBER", "IR_VERSION_OF_RULES", "NOTHING", "Described", "Outcome"]

_TYPES_KEPT = 64
"""For how many combinations of operand types an outcome keeps the types of its new values."""


_OF_SIZES = ("known_of", "never_zero", "shape")
"""The questions about sizes."""

_DOMAIN = attrgetter("domain")

CASTS_BY_NUMBER = 6
"""The first opset version whose Cast has its type as a number; inference does not read the name of a type."""

IR_VERSION_OF_RULES = 10
"""An IR version that allows everything a rule may write."""


class Described(NamedTuple):
    """What inference learns about a value: its serialized type, and its value if it is constant."""

    type: bytes
    constant: Stored | None


class Inferred(NamedTuple):
    """The objection of strict inference to nodes, and the types of their values by name."""

    objection: str
    types: Mapping[str, bytes]


@dataclass(eq=False, frozen=True)
class Outcome:
    """The result of one node.

    Attributes:
        label: its name in reports; empty if there is nothing to report.
        nodes: the nodes that replace it; None if it stays.
        in_place: whether the only such node is the edited node itself.
        added: constants that the nodes read, by their blanks.
        derived: new names in order: stem, tail, name.
        unmended, zeros: see `NodeScope`.
        trail: every question that led to it, with the answer.
        operands: how many distinct operands the node has.
    """

    op_type: str
    label: str = ""
    nodes: Sequence[NodeProto] | None = None
    in_place: bool = False
    refusal: RefusedError | None = None
    added: Mapping[str, Added] = field(default_factory=dict)
    derived: Sequence[tuple[str, str, str]] = ()
    unmended: Mapping[str, bool] = field(default_factory=dict)
    zeros: Collection[str] = ()
    trail: Mapping[Question, Hashable] = field(default_factory=dict, repr=False)
    operands: int = 0
    _inferred: dict[tuple[tuple[str, Described], ...], Inferred] = field(default_factory=dict, repr=False)

    @cached_property
    def template(self) -> Template:
        """What is written for a node."""
        new = *(name for _, _, name in self.derived), *self.added
        return Template(self.nodes or (), (*blanks(self.operands), NAME_BLANK, MARKS, *new))

    @cached_property
    def reads(self) -> Set[str]:
        """The names that nodes and their subgraphs read, but neither compute themselves nor have in `added`."""
        own = {*self.added}
        read: set[str] = set()
        for node in self.nodes or ():
            read |= read_from_outside(node) - own
            own.update(node.output)
        return read

    @cached_property
    def may_share(self) -> bool:
        """Whether rewrites of other nodes may compute a part of this as well.

        Such a part does not depend on the first operand of the replaced node, which is the data, or only on its sizes.
        """
        if self.in_place:
            return False
        of_data, outputs = {DATA}, {*self.outputs} - {*self.new_values}
        for node in self.nodes or ():
            read = set(filter(None, read_by(node)))
            is_of_sizes = node.op_type in ("Shape", "Size")
            if read and outputs.isdisjoint(node.output) and (read.isdisjoint(of_data) or is_of_sizes):
                return True
            if not read.isdisjoint(of_data):
                of_data.update(node.output)
        return False

    @cached_property
    def depends_on_sizes(self) -> bool:
        """Whether the nodes take sizes when they run, or were written after a question about sizes."""
        asks = bool(self.nodes) and any(question.name in _OF_SIZES for question in self.trail)
        return asks or any(node.op_type in ("Shape", "Size") for node in walk(self.nodes or ()))

    @cached_property
    def outputs(self) -> Sequence[str]:
        """What the nodes compute."""
        return [name for node in self.nodes or () for name in node.output]

    @cached_property
    def new_values(self) -> Sequence[str]:
        """The outputs of the nodes that are not operands."""
        derived = {name for _, _, name in self.derived} if self.derived else ()
        return [name for name in self.outputs if name in derived] if derived else ()

    def inferred(self, opset: int, described: Mapping[str, Described]) -> Inferred:
        """The inference over the nodes by themselves, once for each combination of types.

        Inferring the whole model takes longer than converting it. Untouched nodes are as valid as before.

        Args:
            opset: the opset version of the nodes.
            described: types and values of operands, by name.
        """
        key = tuple(described.items())
        if key not in self._inferred:
            if len(self._inferred) >= _TYPES_KEPT:
                self._inferred.clear()
            is_possible = described.keys() >= set(self.reads) and not any(map(_DOMAIN, self.nodes or ()))
            self._inferred[key] = self._infer(opset, described) if is_possible else Inferred("", {})
        return self._inferred[key]

    def _infer(self, opset: int, described: Mapping[str, Described]) -> Inferred:
        model = ModelProto(ir_version=IR_VERSION_OF_RULES, graph=GraphProto(name="added"))
        model.opset_import.add(version=opset)
        # Inference propagates the values of Constant nodes further than those of initializers.
        constants = [(name, each.tensor) for name, each in self.added.items()]
        stated: dict[str, bytes] = {}
        for name, (value_type, constant) in sorted(described.items(), key=itemgetter(0)):
            if name in self.outputs:
                stated.setdefault(name, value_type)
            elif name not in self.reads:
                continue
            elif constant is None:
                model.graph.input.add(name=name).type.ParseFromString(value_type)
            else:
                constants.append((name, numpy_helper.from_array(constant.array)))
        for name, tensor in constants:
            model.graph.node.append(make_node("Constant", [], [name], value=tensor))
        model.graph.node.extend(self.nodes or ())
        state(model.graph, stated)
        inferred, objection = infer(model) if opset < CASTS_BY_NUMBER else model, ""
        try:
            inferred = protected.infer_shapes(inferred, check_type=True, strict_mode=True)
            if not _states_all(inferred.graph):
                # What we infer may be more, and prove a stated type wrong.
                protected.infer_shapes(infer(inferred), check_type=True, strict_mode=True)
        except Exception as error:  # inference raises several types
            inferred, objection = infer(model), one_line(error) or type(error).__name__
        found = inferred.graph.value_info
        types = {value.name: without_made_up_symbols(value.type).SerializeToString() for value in found}
        return Inferred(objection, types)

    @classmethod
    def of(
        cls,
        scope: NodeScope,
        op_type: str,
        label: str,
        nodes: Sequence[NodeProto] | None,
        *,
        in_place: bool,
    ) -> Outcome:
        """The outcome from a node's scope.

        Raises:
            RefusedError: the nodes read a constant that nothing can hold.
        """
        if nodes is None and not scope.unmended:
            return NOTHING
        read: set[str] = set()
        for node in nodes or ():
            read.update(read_by(node) if scope.added else ())
            for attribute in node.attribute:
                # A tensor in an attribute may be named after an operand; that name has no meaning.
                if attribute.t.name and is_in_blanks(attribute.t.name):
                    attribute.t.ClearField("name")
        added: dict[str, Added] = {}
        for name, each in scope.added.items():
            if name in read:
                scope.check_constant(each.tensor)
                added[name] = each
        return cls(
            op_type,
            label=label,
            nodes=nodes,
            in_place=in_place,
            added=added,
            derived=scope.derived,
            unmended=scope.unmended,
            zeros=frozenset(scope.zeros),
            trail=scope.trail,
            operands=scope.operands,
        )


NOTHING = Outcome("")
"""The outcome of a node that is legal."""


def _states_all(graph: GraphProto) -> bool:
    """Whether a graph has no subgraphs and states the types of all node outputs; sizes may be names."""
    types = {value.name: stated_type(value.type) for value in (*graph.value_info, *graph.output)}
    made = [types.get(name, NOTHING_STATED) for node in graph.node for name in node.output if name]
    is_stated = all(each.element_type and each.sizes is not None and None not in each.sizes for each in made)
    return is_stated and not any(map(may_hold_graphs, graph.node))
