"""Einsum below opset 12, as ReduceSum, MatMul and Mul.

Operands are taken two at a time: what only one of them has and nobody asks for is summed away first, what both have and
nobody asks for is contracted by MatMul, and where nothing is contracted Mul broadcasts.

Source: https://onnx.ai/onnx/operators/onnx__Einsum.html (12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

_INT64 = TensorProto.INT64
_HINT = "opset 12 is the oldest that has Einsum"


@dataclass(frozen=True)
class _Term:
    """A value and the letters of its dimensions."""

    name: str
    letters: str


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    """The letters of every operand and of the result."""
    equation = equation.replace(" ", "")
    if "." in equation:
        raise RefusedError(f"its equation {equation!r} has an ellipsis, which no other operators express", _HINT)
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    counts = Counter(left.replace(",", ""))
    if not arrow:
        result = "".join(sorted(letter for letter, times in counts.items() if times == 1))
    if any(len(set(letters)) != len(letters) for letters in operands):
        raise RefusedError(f"its equation {equation!r} takes a diagonal, which no other operators express", _HINT)
    if len(operands) != count:
        raise RefusedError(f"its equation {equation!r} is for {len(operands)} operands, and it has {count}")
    return operands, result


@expresses("Einsum", opset=11)
def _einsum(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Product by product, then what is left to sum and the order of the letters."""
    body = Writer(node, scope)
    operands, result = _parsed(value_of(node, "equation"), len(node.input))
    terms = [_Term(name, letters) for name, letters in zip(node.input, operands, strict=True)]
    total = terms[0]
    for index, term in enumerate(terms[1:], start=1):
        wanted = set(result).union(*(later.letters for later in terms[index + 1 :]))
        total = _product(body, total, term, wanted)
    total = _transposed(body, _summed(body, total, set(result)), result)
    return body.yields_last() if body.nodes else body.yields("Identity", total.name)


def _summed(body: Writer, term: _Term, wanted: Iterable[str]) -> _Term:
    axes = [axis for axis, letter in enumerate(term.letters) if letter not in wanted]
    if not axes:
        return term
    name = body.add("ReduceSum", term.name, tail="sum", axes=axes, keepdims=0)
    return _Term(name, "".join(letter for letter in term.letters if letter in wanted))


def _transposed(body: Writer, term: _Term, letters: str) -> _Term:
    if term.letters == letters:
        return term
    perm = [term.letters.index(letter) for letter in letters]
    return _Term(body.add("Transpose", term.name, tail="transposed", perm=perm), letters)


def _product(body: Writer, one: _Term, other: _Term, wanted: set[str]) -> _Term:
    """The product of two terms, summed over the letters that nobody wants."""
    one = _summed(body, one, wanted | set(other.letters))
    other = _summed(body, other, wanted | set(one.letters))
    both = [letter for letter in one.letters if letter in other.letters]
    batch = "".join(letter for letter in both if letter in wanted)
    inner = "".join(letter for letter in both if letter not in wanted)
    left = "".join(letter for letter in one.letters if letter not in both)
    right = "".join(letter for letter in other.letters if letter not in both)
    if not inner:
        rows = _expanded(body, _transposed(body, one, batch + left), len(right))
        columns = _transposed(body, other, batch + right)
        if left and right:
            columns = _Term(_unsqueezed(body, columns.name, range(len(batch), len(batch + left))), "")
        elif left:
            columns = _expanded(body, columns, len(left))
        return _Term(body.add("Mul", rows.name, columns.name, tail="product"), batch + left + right)
    one, other = _transposed(body, one, batch + left + inner), _transposed(body, other, batch + inner + right)
    if len(left) == len(inner) == len(right) == 1:
        return _Term(body.add("MatMul", one.name, other.name, tail="product"), batch + left + right)
    # As matrices: each group of dimensions is one.
    ends = [_sizes(body, one, range(len(batch), len(batch + left))), _sizes(body, other, _last(other, right))]
    front = [_sizes(body, one, range(len(batch)))]
    rows_name = _matrix(body, one.name, front, [_whole(body, ends[0], len(left)), body.number(-1)])
    columns_name = _matrix(body, other.name, front, [body.number(-1), _whole(body, ends[1], len(right))])
    product = body.add("MatMul", rows_name, columns_name, tail="product")
    return _Term(_matrix(body, product, front, ends), batch + left + right)


def _last(term: _Term, letters: str) -> range:
    return range(len(term.letters) - len(letters), len(term.letters))


def _sizes(body: Writer, term: _Term, axes: range) -> str:
    """The sizes of some dimensions, as a list; empty where there are none."""
    if not axes:
        return ""
    places = body.constant(list(axes), _INT64, "axes_" + "_".join(map(str, axes)))
    return body.add("Gather", body.add("Shape", term.name), places, tail="sizes", axis=0)


def _whole(body: Writer, sizes: str, count: int) -> str:
    """The product of a list of sizes, as a list of one."""
    if count < 2:
        return sizes or body.number(1)
    return body.add("ReduceProd", sizes, tail="size", axes=[0], keepdims=1)


def _matrix(body: Writer, name: str, *shapes: list[str]) -> str:
    parts = [part for shape in shapes for part in shape if part]
    if not parts:
        return body.add("Reshape", name, body.constant([], _INT64, "scalar"), tail="scalar")
    shape = parts[0] if len(parts) == 1 else body.add("Concat", *parts, tail="shape", axis=0)
    return body.add("Reshape", name, shape, tail="reshaped")


def _unsqueezed(body: Writer, name: str, axes: range) -> str:
    return body.add("Unsqueeze", name, tail="aligned", axes=list(axes)) if axes else name


def _expanded(body: Writer, term: _Term, count: int) -> _Term:
    """A term with dimensions of one behind its own."""
    rank = len(term.letters)
    return _Term(_unsqueezed(body, term.name, range(rank, rank + count)), term.letters)
