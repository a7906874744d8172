"""What is told about dimensions of size zero: that none was assumed, or what was added to ask for them at run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from onnx import NodeProto

from reducelower.legalization.edits import Edit
from reducelower.legalization.memo import Outcome
from reducelower.model.graph import walk
from reducelower.model.text import counted
from reducelower.options import Target

__all__ = ["assumes_none", "notes_about_zeros"]


def assumes_none(edits: Iterable[Edit]) -> bool:
    """Whether a rewrite is right only if no dimension is zero."""
    return any("assumed" in outcome.zeros for outcome in _kept(edits))


def notes_about_zeros(edits: Iterable[Edit], target: Target, *, is_asked: bool) -> Iterator[str]:
    """Sentences for the user; `is_asked` says whether the assumption is the user's own, rather than the runtime's."""
    outcomes = [*_kept(edits)]
    if any("assumed" in outcome.zeros for outcome in outcomes):
        reason = "" if is_asked else f", since {target.runtime} refuses an If that would ask"
        yield f"The result assumes that no dimension is 0 when the model runs{reason}."
    added: Counter[str] = Counter()
    for outcome in outcomes:
        if "heeded" in outcome.zeros:
            added[outcome.op_type] += _ifs(outcome.nodes or ())
    if total := sum(added.values()):
        of = ", ".join(op_type for op_type, count in sorted(added.items()) if count)
        does, them = ("asks", "it") if total == 1 else ("ask", "them")
        yield (
            f"{counted(total, 'If')} in place of {of} {does} at run time whether a dimension is 0, since nothing known "
            f"of the sizes rules that out; --assume-nonempty leaves {them} out."
        )


def _kept(edits: Iterable[Edit]) -> Iterator[Outcome]:
    """The outcomes of nodes that were not removed as unused."""
    for edit in edits:
        yield from (outcome for index, outcome in edit.zeros.items() if edit.replaced.get(index) != [])


def _ifs(nodes: Iterable[NodeProto]) -> int:
    return sum(node.op_type == "If" for node in walk(nodes))
