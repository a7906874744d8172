"""Repair models that runtimes run but the checker refuses, without touching any computation.

Exporters and optimizers write nodes out of order, state outdated types, omit imports, or give an IR version that does
not fit. None of this affects the numbers. Each repair edits a model in place and says what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto

from reducelower.given import AnyModel, take
from reducelower.legalization.defects import find_defect
from reducelower.legalization.functions import find_call_defect
from reducelower.model.document import Document
from reducelower.repairs.nodes import drop_copies, drop_functions, name_graphs, put_in_order, rename_duplicates
from reducelower.repairs.stated_types import correct_stated
from reducelower.repairs.versions import add_imports, fit_ir_version, move_to_import

__all__ = ["Repaired", "repair"]

_REPAIRS: Sequence[Callable[[ModelProto], Iterator[str]]] = (
    add_imports, fit_ir_version, name_graphs, rename_duplicates, drop_copies, put_in_order, move_to_import,
    correct_stated, drop_functions,
)  # fmt: skip


@dataclass(frozen=True)
class Repaired:
    """A repaired model.

    Attributes:
        model: the model, in the form of the one given.
        done: one sentence per repair; empty if nothing had to be done.
    """

    model: Any
    done: tuple[str, ...]


def repair(model: AnyModel, *, in_place: bool = False) -> Repaired:
    """Repair a model that runtimes run but the checker refuses, and say what was done.

    Nodes are put in order, each after those it reads from. A graph in which a value is defined twice keeps its
    order. Missing opset imports are added, and nodes of the domain ``ai.onnx`` are written as the import has it.
    The IR version is adjusted. Stated types of computed values that contradict inference, and of initializers that
    hold something else, are dropped, and outputs without a type get one. Graphs without a name get one, and nodes
    with equal names, which onnxruntime does not load, get different ones. Nodes in the form that their operator has
    at another opset version, such as ReduceSum with axes as an attribute at opset 13, are moved to that of the import;
    local functions are left as they are. Copies of an initializer are dropped, and if something is still wrong,
    functions that nothing calls. All else stays as it is. A valid model that runs comes back unchanged.

    Args:
        model: any model, in any form; see `reducelower.legalize`.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The model and what was done. It may still be invalid: what cannot be repaired stays as it is.

    Raises:
        TypeError: it is not a model.
        UnreadableModelError: a file is missing, or it or the bytes are no model.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Neg (z) z = Abs (x) }'
        >>> mended = reducelower.repair(onnx.parser.parse_model(text))
        >>> [node.op_type for node in mended.model.graph.node]
        ['Abs', 'Neg']
        >>> mended.done
        ("put 2 nodes of graph 'g' in order, each behind those it reads from",)
    """
    given = take(model, in_place=in_place)
    message = given.document.message
    if not message.HasField("graph") or find_call_defect(message):
        return Repaired(model, ())  # inference would recurse without end
    mended = message if in_place else given.document.copy()
    done: list[str] = []
    try:
        for mend in _REPAIRS:
            done += mend(mended)
    except Exception:
        if not find_defect(message):
            raise  # not the fault of a model that is damaged
    return Repaired(given.back(Document(mended)), tuple(done))
