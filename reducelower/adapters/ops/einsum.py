"""Einsum below opset 12; not text, since the nodes depend on the letters.

Operands are multiplied one after the other. Letters that later operands and the result do not have are summed: by
ReduceSum if only one of the two has them, by MatMul if both have. If MatMul has nothing to sum, Mul multiplies.

Source: the page of Einsum (12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_letters

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError

_ELLIPSIS = "..."
_HINT = "opset 12 is the oldest that has Einsum"


@dataclass(frozen=True)
class _Term:
    """A value and the letters of its dimensions."""

    name: str
    letters: str


def _parsed(equation: str, ranks: Sequence[Callable[[], int]]) -> tuple[list[str], str]:
    """The letters of every operand and of the result; each ellipsis becomes unused letters, aligned from the right."""
    equation = equation.replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    if len(operands) != len(ranks):
        raise RefusedError(f"its equation {equation!r} is for {len(operands)} operands, and it has {len(ranks)}")
    if not arrow:
        counts = Counter(left.replace(",", "").replace(".", ""))
        result = "..." + "".join(sorted(letter for letter, times in counts.items() if times == 1))
    if _ELLIPSIS in left and _ELLIPSIS not in result:
        raise RefusedError(f"its equation {equation!r} sums over an ellipsis, which has no defined meaning", _HINT)
    if any(len(set(letters) - {"."}) < len(letters.replace(".", "")) for letters in operands):
        raise RefusedError(f"its equation {equation!r} takes a diagonal", _HINT)
    free = "".join(letter for letter in ascii_letters if letter not in equation)
    hidden = [
        rank() - len(letters) + len(_ELLIPSIS) if _ELLIPSIS in letters else 0
        for letters, rank in zip(operands, ranks, strict=True)
    ]
    ellipses = [free[len(free) - count :] if count else "" for count in (*hidden, max(hidden))]
    *operands, result = (
        letters.replace(_ELLIPSIS, ellipsis) for letters, ellipsis in zip((*operands, result), ellipses, strict=True)
    )
    return operands, result


@rule("Einsum", "absent", opset=11)
def _einsum(op: Writer) -> list[NodeProto]:
    """Multiply the operands in turn, then sum the remaining letters and transpose."""
    ranks = [partial(op.scope.needed_rank, name) for name in op.node.input]
    operands, result = _parsed(op.attribute("equation"), ranks)
    terms = [
        _without_ones(op, _Term(name, letters), set(result))
        for name, letters in zip(op.node.input, operands, strict=True)
    ]
    total = terms[0]
    last = {letter: index for index, term in enumerate(terms) for letter in term.letters}
    for index, term in enumerate(terms[1:], start=1):
        wanted = set(result) | {letter for letter, where in last.items() if where > index}
        total = _product(op, total, term, wanted)
    total = _transposed(op, _summed(op, total, set(result)), result)
    return op.yields_value(total.name)


def _without_ones(op: Writer, term: _Term, wanted: set[str]) -> _Term:
    """Sum dimensions of size 1 that the result lacks, since they broadcast to other operands, as in numpy."""
    shape = op.scope.shape(term.name)
    ones = {letter for letter, size in zip(term.letters, shape or (), strict=False) if size == 1} - wanted
    return _summed(op, term, set(term.letters) - ones)


def _summed(op: Writer, term: _Term, wanted: Iterable[str]) -> _Term:
    axes = [axis for axis, letter in enumerate(term.letters) if letter not in wanted]
    if not axes:
        return term
    name = op.add("ReduceSum", term.name, tail="sum", axes=axes, keepdims=0)
    return _Term(name, "".join(letter for letter in term.letters if letter in wanted))


def _transposed(op: Writer, term: _Term, letters: str) -> _Term:
    if term.letters == letters:
        return term
    perm = [term.letters.index(letter) for letter in letters]
    return _Term(op.add("Transpose", term.name, tail="transposed", perm=perm), letters)


def _product(op: Writer, one: _Term, other: _Term, wanted: set[str]) -> _Term:
    """The product of two terms, summed over the letters that are not wanted."""
    one = _summed(op, one, wanted | set(other.letters))
    other = _summed(op, other, wanted | set(one.letters))
    both = [letter for letter in one.letters if letter in other.letters]
    batch = "".join(letter for letter in both if letter in wanted)
    inner = "".join(letter for letter in both if letter not in wanted)
    left = "".join(letter for letter in one.letters if letter not in both)
    right = "".join(letter for letter in other.letters if letter not in both)
    if not inner:
        rows = _expanded(op, _transposed(op, one, batch + left), len(right))
        columns = _transposed(op, other, batch + right)
        if left and right:
            columns = _Term(_unsqueezed(op, columns.name, range(len(batch), len(batch + left))), "")
        elif left:
            columns = _expanded(op, columns, len(left))
        return _Term(op.add("Mul", rows.name, columns.name, tail="product"), batch + left + right)
    one, other = _transposed(op, one, batch + left + inner), _transposed(op, other, batch + inner + right)
    if len(left) == len(inner) == len(right) == 1:
        return _Term(op.add("MatMul", one.name, other.name, tail="product"), batch + left + right)
    # Each group of dimensions becomes one, so that both are stacks of matrices.
    ends = [_sizes(op, one, range(len(batch), len(batch + left))), _sizes(op, other, _last(other, right))]
    around = range(len(batch))
    left_shape = [_sizes(op, one, around), _count(op, ends[0], len(left)), op.number(-1)]
    right_shape = [_sizes(op, other, around), op.number(-1), _count(op, ends[1], len(right))]
    matrices = (_matrix(op, one.name, left_shape), _matrix(op, other.name, right_shape))
    product = op.add("MatMul", *matrices, tail="product")
    # The batch may be broadcast, since an ellipsis may be. So its sizes come from the product.
    front = _sizes(op, _Term(product, batch), around)
    return _Term(_matrix(op, product, [front, *ends]), batch + left + right)


def _last(term: _Term, letters: str) -> range:
    return range(len(term.letters) - len(letters), len(term.letters))


def _sizes(op: Writer, term: _Term, axes: Sequence[int]) -> str:
    """The sizes of some dimensions, as a list; an empty name if there are none."""
    if not axes:
        return ""
    places = op.integers(list(axes), "axes_" + "_".join(map(str, axes)))
    return op.add("Gather", op.add("Shape", term.name), places, tail="sizes", axis=0)


def _count(op: Writer, sizes: str, count: int) -> str:
    """The product of a list of sizes, as a list of one."""
    if count < 2:
        return sizes or op.number(1)
    return op.add("ReduceProd", sizes, tail="size", axes=[0], keepdims=1)


def _matrix(op: Writer, name: str, shape_parts: list[str]) -> str:
    parts = [part for part in shape_parts if part]
    if not parts:
        return op.add("Reshape", name, op.integers([], "scalar"), tail="scalar")
    shape = parts[0] if len(parts) == 1 else op.add("Concat", *parts, tail="shape", axis=0)
    return op.add("Reshape", name, shape, tail="reshaped")


def _unsqueezed(op: Writer, name: str, axes: range) -> str:
    return op.add("Unsqueeze", name, tail="aligned", axes=list(axes)) if axes else name


def _expanded(op: Writer, term: _Term, count: int) -> _Term:
    """A term with dimensions of size 1 behind its own."""
    rank = len(term.letters)
    return _Term(_unsqueezed(op, term.name, range(rank, rank + count)), term.letters)
