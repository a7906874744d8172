"""Notes about dimensions of size zero: the result assumes that there are none, or asks for them at run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reducelower.legalization.edits import Edit
from reducelower.model.graph import walk
from reducelower.model.text import counted
from reducelower.options import Target

__all__ = ["notes_on_zeros"]


def notes_on_zeros(edits: Iterable[Edit], target: Target, *, is_asked: bool) -> tuple[bool, Sequence[str]]:
    """Whether a rewrite is right only if no dimension is zero, and sentences for the user.

    `is_asked` says whether the user asked for the assumption; else the runtime requires it.
    """
    # Without those of nodes that were removed as unused.
    outcomes = [each for edit in edits for index, each in edit.zeros.items() if edit.replaced.get(index) != []]
    notes = []
    is_assumed = any("assumed" in outcome.zeros for outcome in outcomes)
    if is_assumed:
        reason = "" if is_asked else f", since {target.runtime} refuses an If that would ask"
        notes.append(f"The result assumes that no dimension is 0 when the model runs{reason}.")
    added: Counter[str] = Counter()
    for outcome in outcomes:
        if "heeded" in outcome.zeros:
            added[outcome.op_type] += sum(node.op_type == "If" for node in walk(outcome.nodes or ()))
    if total := sum(added.values()):
        of = ", ".join(op_type for op_type, count in sorted(added.items()) if count)
        does, them = ("asks", "it") if total == 1 else ("ask", "them")
        notes.append(
            f"{counted(total, 'If')} in place of {of} {does} at run time whether a dimension is 0, since nothing known "
            f"of the sizes rules that out; --assume-nonempty leaves {them} out."
        )
    return is_assumed, notes
