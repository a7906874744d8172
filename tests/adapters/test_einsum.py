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


@pytest.mark.parametrize(("equation", "reason"), [("ii->i", "takes a diagonal"), ("...i->...", "has an ellipsis")])
def test_what_no_product_expresses_is_refused(equation: str, reason: str) -> None:
    assert reason in refusal(one("Einsum", {"x": floats(3, 3)}, 13, equation=equation), 11)
