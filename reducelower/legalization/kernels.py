"""Operators for which the installed onnxruntime has no kernel, read from its registry without loading a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from onnx import ModelProto

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, has_body, schema, since_version
from reducelower.plan import Plan

__all__ = ["cannot_run", "with_missing_kernels"]

_UP_TO_ANY = 2**31 - 1
_WITHOUT_KERNEL = {"Constant"}
"""Operators that become initializers when onnxruntime loads a model."""

_RUN_WHOLE = range(7, 22)
_BUT_FOR = {"ImageDecoder"}
"""Opset versions at which every supported onnxruntime runs all operators except these. There is no need to import it
then, which takes longer than converting a small model."""


def with_missing_kernels(plan: Plan, model: ModelProto) -> Plan:
    """The plan with the result of `cannot_run` added to its notes, unless the target names a runtime."""
    if plan.target.opset is None or plan.target.runtime is not None:
        return plan
    said = cannot_run(model, plan.source_opset, plan.target.opset)
    return replace(plan, notes=(*plan.notes, said)) if said else plan


def cannot_run(model: ModelProto, source_opset: int, opset: int) -> str:
    """Operators that onnxruntime ran before an upgrade but does not run at the new opset version.

    Returns a sentence with the operators and the newest opset version that runs; empty if there are none, or if
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
    """Whether there is a kernel for the operator, or a function body in place of one.

    A kernel registered without a last version covers only its first, since onnxruntime cannot know of later changes.
    """
    found = schema(op_type, opset)
    since = since_version(op_type, opset)
    if found is None or op_type in _WITHOUT_KERNEL or has_body(found):
        return True
    return any(since == first or (last != _UP_TO_ANY and first <= since <= last) for first, last in kernels)


@cache
def _kernels() -> Mapping[str, Sequence[tuple[int, int]]]:
    """First and last version of each kernel, by operator of the default domain."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    found = defaultdict[str, list[tuple[int, int]]](list)
    for kernel in get_all_opkernel_def():
        if kernel.domain in DEFAULT_DOMAINS and kernel.provider == "CPUExecutionProvider":
            found[kernel.op_name].append(tuple(kernel.version_range))
    return found
