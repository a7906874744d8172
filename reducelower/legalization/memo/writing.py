"""Apply an outcome to another node, with that node's names in the blanks.

The result is bytes: thousands of nodes are written from one template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from onnx import GraphProto, NodeProto

from reducelower.legalization.edits import Edit
from reducelower.legalization.memo.alone import alone, operands_of
from reducelower.legalization.memo.format import Blank, Format, Piece
from reducelower.legalization.memo.outcome import MARKS, NAME_BLANK, Outcome, Parts, fill, is_in_blanks
from reducelower.legalization.memo.reading import ReadNode
from reducelower.model.graph import subgraphs
from reducelower.model.value_info import entry
from reducelower.model.wire import varint
from reducelower.scope.graph import GraphScope
from reducelower.scope.node import Added, blank

__all__ = ["Writing", "put_in_own_names", "put_refusal"]

_NOTHING: Mapping[str, bytes] = {}


def _real_names(read: ReadNode) -> dict[str, str]:
    real = {blank(number): name.decode() for number, name in enumerate(read.names[:-1])}
    real[NAME_BLANK] = read.names[-1].decode()
    return real


def put_refusal(outcome: Outcome, edit: Edit, index: int, read: ReadNode) -> None:
    """Record why a node cannot be legalized, with its own names."""
    assert outcome.refusal is not None
    real = _real_names(read)
    reason, hint = fill(outcome.refusal.reason, real), fill(outcome.refusal.hint, real)
    edit.refuse(index, real[NAME_BLANK], outcome.op_type, reason, hint)


def put_in_own_names(outcome: Outcome, edit: Edit, index: int) -> None:
    """Apply an outcome that uses the names of the model instead of blanks."""
    graph, nodes = edit.scope, outcome.nodes or ()
    kept = set(graph.node_list[index].output)
    made = [name for node in nodes for name in node.output if name not in kept]
    types = dict(outcome.types)
    if made and graph.is_graph:
        stated = filter(graph.states_type, operands_of(nodes, outcome.added))
        known = {name: found for name in stated if (found := graph.described(name)) is not None}
        types = {
            **alone(nodes, outcome.added, graph.ground.opset, known, graph.ground.values, types.items()).types,
            **types,
        }
    added = {name: _add(each, graph, {}) for name, each in outcome.added}
    for node in nodes:
        if added:
            _rename(node, added)
    if not outcome.in_place:
        edit.replaced[index] = list(nodes)
    if types:
        edit.types[index] = b"".join([entry(name.encode(), types[name]) for name in made if name in types])
    if outcome.label:
        edit.tell(index, (outcome.op_type, outcome.label))


def _add(added: Added, graph: GraphScope, real: Mapping[str, str]) -> str:
    tail = fill(added.tail, real)
    if added.attribute is not None:
        return graph.add_reference(added.attribute, added.written, tail)
    assert added.value is not None
    return graph.add_constant(added.value, added.tensor, tail)


class Writing:
    """Writes one outcome in one graph."""

    def __init__(self, outcome: Outcome, graph: GraphScope, read: ReadNode, doubts: list[str]) -> None:
        """Add the constants that the nodes read to the graph.

        `read` is the first node that gets the outcome. If inference objects, its operator is added to `doubts`.
        """
        self.outcome = outcome
        self._graph = graph
        self._doubts = doubts
        self._site = outcome.op_type, outcome.label
        self._names = graph.ground.names
        self._name_at = len(read.names) - 1
        self._marks_at = len(read.names)
        # A constant may be named after an operand; the first node that reads it decides.
        real = _real_names(read)
        self._fixed = {name: _add(each, graph, real) for name, each in outcome.added}
        self._numbers = {name: self._marks_at + 1 + at for at, (_, _, name) in enumerate(outcome.derived)}
        self._tails: dict[str, tuple[int, str]] = {}
        self._families = self._find_families()
        self._pieces = self._take_apart()
        self._makes_names = bool(outcome.derived) or self._pieces is None
        self._makes_values = bool(outcome.new_values) and graph.is_graph
        if outcome.nodes:
            self._inferred(read, graph.has_type_at_hand)

    # New names

    def _find_families(self) -> dict[int, tuple[str, frozenset[bytes]]] | None:
        """For each stem number, the family of its tails and the tails; None if names have to be found one by one."""
        numbers = {blank(number): number for number in range(self._name_at)} | {NAME_BLANK: self._name_at}
        tails: dict[int, list[str]] = {}
        for stem, _, name in self.outcome.derived:
            number, before = self._tails.get(stem) or (numbers.get(stem, -1), "")
            if number < 0 or not name.startswith(stem):
                return None
            # The requested tail, followed by a number if the outcome uses that tail already.
            whole = before + name[len(stem) :]
            self._tails[name] = number, whole
            tails.setdefault(number, []).append(whole)
        found = {}
        for number, each in tails.items():
            family = self._names.family(each)
            if not family:
                return None
            found[number] = family, frozenset(tail.encode() for tail in each)
        return found

    def _claim_all(self, read: ReadNode) -> bool:
        claimed: list[tuple[str, bytes]] = []
        for number, (family, tails) in (self._families or {}).items():
            if not self._names.claim(family, read.names[number], tails):
                for pair in claimed:
                    self._names.disclaim(*pair)
                return False
            claimed.append((family, read.names[number]))
        return True

    # One node

    def put(self, edit: Edit, index: int, read: ReadNode) -> None:
        """Apply the outcome to a node."""
        outcome, graph = self.outcome, self._graph
        names = self._names_of_new(read) if self._makes_names else None
        if self._pieces is None:
            nodes = [self._renamed(node, names, read.marks) for node in outcome.nodes or ()]
            if outcome.in_place:
                graph.node_list.overwrite(index, nodes[0].SerializeToString())
            else:
                edit.replaced[index] = nodes
        elif outcome.nodes is not None:
            if names is None:
                written = self._with_tails.fill((*read.names, read.marks))
            else:
                new = [names[name].encode() for name in self._numbers]
                written = self._with_new_names.fill((*read.names, read.marks, *new))
            if outcome.in_place:
                graph.node_list.overwrite(index, written)
            else:
                edit.replaced[index] = written
        if self._makes_values:
            self._state_types(edit, index, read, names)
        if outcome.label:
            edit.tell(index, self._site)
        for number in outcome.released:
            graph.release(read.names[number].decode())
        for number, value_type in outcome.stated:
            graph.state(read.names[number].decode(), value_type)
        for number, tensor in outcome.adopted:
            graph.adopt_constant(read.names[number].decode(), tensor)

    def _inferred(self, read: ReadNode, is_known: Callable[[str], bool]) -> Mapping[str, bytes]:
        """The types of new values, if the types of all operands are known; else empty."""
        outcome, graph = self.outcome, self._graph
        for number in outcome.reads:
            if not is_known(read.names[number].decode()):
                return _NOTHING
        operands = [name.decode() for name in read.names[: self._name_at]]
        given = tuple([graph.described(name) if is_known(name) else None for name in operands])
        if any(given[number] is None for number in outcome.reads):
            return _NOTHING
        found = outcome.alone(graph.ground.opset, given, graph.ground.values)
        if found.objection:
            self._doubts.append(outcome.op_type)
        return found.types

    def _state_types(self, edit: Edit, index: int, read: ReadNode, new: Mapping[str, str] | None) -> None:
        """Let the graph state the types of new values, if it states those of the operands."""
        types = self._inferred(read, self._graph.states_type)
        if self.outcome.types:
            types = {**types, **dict(self.outcome.types)}
        if not types:
            return
        named = [(name, types[name]) for name in self.outcome.new_values if name in types]
        if named:
            edit.types[index] = self._entries(named, read.names, new)

    def _entries(
        self, types: Iterable[tuple[str, bytes]], names: Sequence[bytes], new: Mapping[str, str] | None
    ) -> bytes:
        """Value_info for new values, as bytes of a GraphProto."""
        stated = []
        for name, value_type in types:
            if new is None:
                number, tail = self._tails[name]
                stated.append(entry(names[number] + tail.encode(), value_type))
            else:
                stated.append(entry(new[name].encode(), value_type))
        return b"".join(stated)

    def _names_of_new(self, read: ReadNode) -> dict[str, str] | None:
        """Names by their blanks; None if every new name is its stem and tail, and all of these were free."""
        is_claimed = self._families is not None and self._claim_all(read)
        if is_claimed and self._pieces is not None:
            return None
        real = {**_real_names(read), **self._fixed}
        for stem, tail, name in self.outcome.derived:
            if is_claimed:
                number, whole = self._tails[name]
                real[name] = read.names[number].decode() + whole
            else:
                # The stem of a nested replacement may itself be a new name.
                real[name] = self._names.fresh(real.get(stem, stem), tail)
        return real

    # As bytes, by template

    def _take_apart(self) -> list[list[Piece | str]] | None:
        """The nodes in pieces, with new names as strings; None if a node has subgraphs or names of another form."""
        nodes = []
        for parts in self.outcome.parts:
            pieces = None if parts is None else self._pieces_of(parts)
            if pieces is None:
                return None
            nodes.append(pieces)
        return nodes

    def _pieces_of(self, parts: Parts) -> list[Piece | str] | None:
        pieces: list[Piece | str] = []
        for tag, name in parts.names:
            piece = self._piece_of(name)
            if piece is None:
                return None
            pieces += [tag, piece]
        pieces.append(parts.head)
        if parts.has_marks:
            pieces.append((self._marks_at, b""))
        pieces.append(parts.behind)
        return pieces

    def _piece_of(self, name: str) -> Piece | str | None:
        if name in self._fixed:
            return _coded(self._fixed[name])
        if name == NAME_BLANK:
            return self._name_at, b""
        if name in self._numbers:
            return name
        if not is_in_blanks(name):
            return _coded(name)
        found = re.fullmatch(r"⟦(\d+)⟧", name)
        return (int(found[1]), b"") if found else None

    @cached_property
    def _with_tails(self) -> Format:
        """A template in which each new name is a tail after one of the node's names."""
        return self._format({name: (number, tail.encode()) for name, (number, tail) in self._tails.items()})

    @cached_property
    def _with_new_names(self) -> Format:
        """A template with a blank for every new name, after those of names and marks."""
        return self._format({name: (number, b"") for name, number in self._numbers.items()})

    def _format(self, new: Mapping[str, Blank]) -> Format:
        nodes = [[new[piece] if isinstance(piece, str) else piece for piece in node] for node in self._pieces or ()]
        return Format(nodes, self._marks_at, is_bare=self.outcome.in_place)

    # As messages

    def _renamed(self, node: NodeProto, names: Mapping[str, str] | None, marks: bytes) -> NodeProto:
        """A copy of a node and its subgraphs with real names."""
        assert names is not None
        copy = NodeProto.FromString(node.SerializeToString())
        _rename(copy, names)
        if copy.doc_string == MARKS:
            copy.ClearField("doc_string")
            copy.MergeFromString(marks)
        return copy


def _rename(node: NodeProto, names: Mapping[str, str]) -> None:
    for values in (node.input, node.output):
        for index, name in enumerate(values):
            values[index] = _renamed(name, names)
    node.name = _renamed(node.name, names)
    for _, _, graph in subgraphs(node):
        _rename_graph(graph, names)


def _rename_graph(graph: GraphProto, names: Mapping[str, str]) -> None:
    graph.name = _renamed(graph.name, names)
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        for value in values:
            value.name = _renamed(value.name, names)
    for node in graph.node:
        _rename(node, names)


def _renamed(name: str, names: Mapping[str, str]) -> str:
    return names[name] if name in names else fill(name, names)


def _coded(name: str) -> bytes:
    """A name as protobuf writes it after the tag: length, then UTF-8."""
    text = name.encode()
    return varint(len(text)) + text
