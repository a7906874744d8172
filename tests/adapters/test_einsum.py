"""Einsum below opset 12."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.models import assert_same, floats, one, operators, refusal

SIZES = dict(zip("abcdefhijknqw", (2, 3, 4, 2, 3, 2, 3, 4, 5, 2, 3, 4, 2), strict=True))
EQUATIONS = {
    "ij,jk->ik": ["MatMul"],
    "bij,bjk->bik": ["MatMul"],
    "ij,jk": ["MatMul"],
    "bhid,bhjd->bhij": ["Transpose", "MatMul"],
    "bqhd,bkhd->bhqk": ["Transpose", "Transpose", "MatMul"],
    "ij->ji": ["Transpose"],
    "ij->": ["ReduceSum"],
    "ij->i": ["ReduceSum"],
    "ij,ij->ij": ["Mul"],
    "i,j->ij": None,
    "abc,cd->abd": None,
    "abcd,cdef->abef": None,
    "ab,ab->": None,
    "ab,ab->a": None,
    "ab,b->a": None,
    "a,ab,abc->abc": None,
    "nc,ncw->nw": None,
    "ab,cd->dbca": None,
    "abc,ac->ac": None,
    "ba": None,
}


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_of_numpy(equation: str, target: int, ranked: bool) -> None:
    operands = equation.split("->")[0].split(",")
    feeds = {
        f"x{index}": floats(*(SIZES[letter] for letter in letters), seed=index)
        for index, letters in enumerate(operands)
    }
    made = one("Einsum", feeds, 13, ranked=feeds if ranked else (), equation=equation)
    result = assert_same(made, feeds, target, np.einsum(equation, *feeds.values()))
    if EQUATIONS[equation]:
        assert operators(result) == EQUATIONS[equation]


ELLIPSES = [
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (1, 5, 4, 2)),
    ("...ij,...jk", (1, 3, 4), (2, 4, 5)),
    ("b...d,dhk->b...hk", (2, 3, 4), (4, 2, 3)),
    ("...d,d->...", (2, 3, 4), (4,)),
    ("...hid,...hjd->...ijh", (1, 2, 3, 4), (3, 2, 5, 4)),
    ("...ab,...ab->...", (2, 3, 4), (1, 3, 4)),
    ("ii->i", (4, 4), None),
    ("bii->b", (2, 3, 3), None),
    ("iij,jk->ik", (3, 3, 2), (2, 4)),
    ("aibi->ab", (2, 3, 4, 3), None),
    ("...iijj->...ij", (2, 3, 3, 4, 4), None),
]


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize(("equation", "left", "right"), ELLIPSES)
def test_ellipses_and_diagonals(
    equation: str, left: tuple[int, ...], right: tuple[int, ...] | None, target: int
) -> None:
    feeds = {"x": floats(*left), **({} if right is None else {"z": floats(*right, seed=1)})}
    made = one("Einsum", feeds, 13, ranked=feeds, equation=equation)
    assert_same(made, feeds, target, np.einsum(equation, *feeds.values()))


def test_a_sum_over_an_ellipsis_is_refused() -> None:
    feeds = {"x": floats(2, 3)}
    made = one("Einsum", feeds, 13, equation="...i->...i")
    made.graph.node[0].attribute[0].s = b"...i->i"
    assert "sums over an ellipsis" in refusal(made, 11)
