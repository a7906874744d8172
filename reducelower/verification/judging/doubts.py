"""Second looks at a difference: random operators, ill-conditioned models, two runtimes that do not agree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import numpy as np
from onnx import ModelProto, NodeProto

from reducelower.model.graph import all_nodes, read_by, walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, identical, is_float, measure
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.judging.compare import tensors, withdrawn
from reducelower.verification.judging.runs import Clock, Run
from reducelower.verification.operators import RANDOM, of_kind
from reducelower.verification.result import OutputComparison
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.source import CannotRunError, OutOfTimeError

__all__ = ["is_of_last_digits", "is_slight", "no_evidence", "random_outputs"]

_OF_TWO_RUNTIMES = 1e-5
"""The share of the largest value of a tensor by which two runtimes may differ."""

_OF_A_FEW_SUMS = 8.0
"""How many last digits of the largest value of a tensor a few sums lose."""


def random_outputs(
    model: ModelProto, run: Run, other: Run, outputs: Sequence[OutputComparison], clock: Clock
) -> list[OutputComparison]:
    """Withdraw the comparison of outputs that the source does not reproduce on the same inputs, or elsewhere.

    Each runtime draws random numbers of its own. When the time is over, what was seen until then counts.
    """
    names = [value.name for value in model.graph.output]
    unstable = _drawn(model, _OF_PROBABILITIES if run.runtime == other.runtime else RANDOM)
    found = sorted({node.op_type for node in all_nodes(model)} & RANDOM)
    # Without a random operator, one set of inputs tells whether threads add up in an order of their own.
    for feeds, first in islice(zip(run.cases, run.results, strict=True), None if found else 1):
        try:
            clock.check()
            second = run.session.run(feeds, clock.left)
        except OutOfTimeError:
            break
        except CannotRunError:
            return list(outputs)
        for name, left, right in zip(names, first, second, strict=True):
            there = dict(tensors(name, right))
            unstable |= {part for part, value in tensors(name, left) if not _identical(value, there.get(part))}
    if not unstable:
        return list(outputs)
    reason = f"the source gives different values each time it is run ({', '.join(found) or 'it is not deterministic'})"
    return withdrawn(outputs, reason, lambda item: item.name in unstable and item.shape_before == item.shape_after)


_OF_PROBABILITIES = of_kind("drawing by probability")  # their pages leave open what others than these do


def _drawn(model: ModelProto, kinds: Collection[str]) -> set[str]:
    """The values of the main graph that are computed from what some operators draw, in functions too."""
    drawing = {("", kind) for kind in kinds}
    while found := {
        (item.domain, item.name)
        for item in model.functions
        if (item.domain, item.name) not in drawing and any(_kind(node) in drawing for node in walk(item.node))
    }:
        drawing |= found
    names: set[str] = set()
    for node in model.graph.node:
        if any(_kind(inner) in drawing for inner in walk([node])) or not names.isdisjoint(read_by(node)):
            names.update(name for name in node.output if name)
    return names


def _kind(node: NodeProto) -> tuple[str, str]:
    return "" if node.domain in DEFAULT_DOMAINS else node.domain, node.op_type


def _identical(left: Array | None, right: Array | None) -> bool:
    if left is None or right is None:
        return left is right
    return identical(left, right) or (left.dtype == right.dtype == object and left.tolist() == right.tolist())


def is_slight(before: Array, after: Array, scale: float = 0.0) -> bool:
    """Whether two runtimes may differ so in computing one thing: by the last digits of single precision, of a tensor.


    Operators such as Attention compute in single precision within double ones, and not every runtime does. The last
    place of what they are given, of a magnitude of `scale`, may be lost on the way.
    """
    if before.dtype != after.dtype or before.shape != after.shape or not is_float(before):
        return False
    if before.dtype.itemsize == 8:
        with np.errstate(over="ignore"):
            before, after = before.astype(np.float32), after.astype(np.float32)
    tolerance = Tolerance(relative=_OF_TWO_RUNTIMES, absolute=float(np.finfo(np.float32).eps) * scale)
    return not measure(before, after, tolerance, by_tensor=True).mismatch


def is_of_last_digits(before: Array, after: Array) -> bool:
    """Whether two results differ by no more than a few sums lose, in their own type and of a tensor.

    Narrower floats than those of single precision are not taken: a few of their last digits are a percent.
    """
    if before.dtype != after.dtype or before.shape != after.shape or before.dtype not in (np.float32, np.float64):
        return False
    tolerance = Tolerance(relative=_OF_A_FEW_SUMS * float(np.finfo(before.dtype).eps))
    return not measure(before, after, tolerance, by_tensor=True).mismatch


def no_evidence(sides: Iterable[tuple[str, ModelProto]]) -> str:
    """Why a difference of two sides, by runtime and model, says nothing against a conversion; empty where it does."""
    stale = sorted({kind for runtime, model in sides if runtime == "reference" for kind in wrong_in_reference(model)})
    if not stale:
        return ""
    named = ", ".join(stale[:5])
    return f"onnxruntime does not run it, and the reference evaluator is no evidence for {named} as it stands here"
