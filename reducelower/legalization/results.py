"""Turn the edits of a run into results: the edited model, the sites, and a record of what was applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reducelower.legalization.edits import Edit
from reducelower.legalization.memo import entry_of
from reducelower.legalization.quantized_pairs import QUANTIZED
from reducelower.model.rewrites import Applied, Entry
from reducelower.plan import Label, Site
from reducelower.scope.blanks import blank

__all__ = ["applied", "splice"]


def applied(edits: Iterable[Edit]) -> Sequence[Applied]:
    """What was applied where, as data, if the run recorded it."""
    entries: dict[int, Entry] = {}
    records = []
    for edit in edits:
        for index, pairs in sorted((edit.applied or {}).items()):
            for read, outcome in pairs:
                is_pair = outcome.op_type == "DequantizeLinear" and read is not None and read.key[0] > QUANTIZED
                if read is None or is_pair:
                    records.append(Applied(edit.scope.path, index))
                    continue
                if id(outcome) not in entries:
                    entries[id(outcome)] = entry_of(read, outcome, edit.scope)
                names = {blank(number): name.decode() for number, name in enumerate(read.names[:-1])}
                records.append(Applied(edit.scope.path, index, entries[id(outcome)], names))
    return records


def splice(edits: Sequence[Edit], *, report: bool) -> list[Site]:
    """Splice in all replacements; return all sites if `report`, else an empty list."""
    groups: list[list[Site]] = []
    # Subgraphs are listed after their enclosing graph, but must be done before their node is copied.
    for edit in reversed(edits):
        path, nodes = edit.scope.path, edit.scope.node_list
        names = {index: nodes[index].name or f"{nodes[index].op_type}#{index}" for index in edit.sites if report}
        edit.splice()
        positions = edit.positions() if report else {}
        groups.append([_site(edit, index, path, name, positions[index]) for index, name in sorted(names.items())])
    return [site for group in reversed(groups) for site in group]


def _site(edit: Edit, index: int, path: str, node: str, position: tuple[int, int]) -> Site:
    op_type, label = edit.sites[index]
    because = label.because if isinstance(label, Label) else ""
    regions = edit.regions.get(index, ())
    return Site(path, node, op_type, str(label), index, *position, raised_from=regions, because=because)
