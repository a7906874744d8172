"""What the installed onnxruntime has no kernel for, read from its registry: no model is loaded to find out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from onnx import ModelProto

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, schema, since_version
from reducelower.plan import Plan

__all__ = ["cannot_run", "with_missing_kernels"]

_UP_TO_ANY = 2**31 - 1
_WITHOUT_KERNEL = {"Constant"}
"""Operators that become initializers when a model is loaded."""

_RUN_WHOLE = range(7, 22)
_BUT_FOR = {"ImageDecoder"}
"""Opset versions of which every onnxruntime that is supported runs all operators but these, so that there is no need to
import it, which takes longer than to convert a small model."""


def with_missing_kernels(plan: Plan, model: ModelProto) -> Plan:
    """A plan whose notes say what `cannot_run` does of the model it led to, where that is not for a runtime by name."""
    if plan.target.opset is None or plan.target.runtime is not None:
        return plan
    said = cannot_run(model, plan.source_opset, plan.target.opset)
    return replace(plan, notes=(*plan.notes, said)) if said else plan


def cannot_run(model: ModelProto, source_opset: int, opset: int) -> str:
    """What onnxruntime ran before a model was raised to an opset version, and does not run there.

    It is a sentence that names the operators and the newest opset version without them; empty where there is none, or
    onnxruntime is not installed.
    """
    if opset <= source_opset:
        return ""
    op_types = {node.op_type for node in all_nodes(model) if node.domain in DEFAULT_DOMAINS}
    changed = {name for name in op_types if since_version(name, opset) > source_opset}
    if opset in _RUN_WHOLE and changed.isdisjoint(_BUT_FOR):
        return ""
    try:
        missing = _missing(changed, opset) if changed else []
    except ImportError:
        return ""
    if not missing:
        return ""
    from onnxruntime import __version__

    newest = next((one for one in range(opset - 1, source_opset, -1) if not _missing(changed, one)), source_opset)
    named = ", ".join(f"{name} of opset {since_version(name, opset)}" for name in missing)
    return (
        f"onnxruntime {__version__}, which is installed, has no kernel for {named} on the CPU; "
        f"opset {newest} is the newest at which it runs all of them"
    )


def _missing(op_types: set[str], opset: int) -> list[str]:
    kernels = _kernels()
    return [name for name in sorted(op_types) if not _has(kernels[name], name, opset)]


def _has(kernels: Sequence[tuple[int, int]], op_type: str, opset: int) -> bool:
    """Whether there is a kernel of an operator, or a body that stands in for one.

    A kernel without a last version is for the first one only, as onnxruntime cannot know what changes later.
    """
    found: Any = schema(op_type, opset)  # its stubs do not know the bodies
    since = since_version(op_type, opset)
    if found is None or op_type in _WITHOUT_KERNEL or found.has_function or found.has_context_dependent_function:
        return True
    return any(since == first or (last != _UP_TO_ANY and first <= since <= last) for first, last in kernels)


@cache
def _kernels() -> Mapping[str, Sequence[tuple[int, int]]]:
    """First and last version of the kernels of each operator of the default domain."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    found = defaultdict[str, list[tuple[int, int]]](list)
    for kernel in get_all_opkernel_def():
        if kernel.domain in DEFAULT_DOMAINS and kernel.provider == "CPUExecutionProvider":
            found[kernel.op_name].append(tuple(kernel.version_range))
    return found
