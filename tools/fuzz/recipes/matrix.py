"""Products of matrices, and attention."""

from __future__ import annotations

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe


def _factors(draft: Draft) -> tuple[tuple[int, ...], tuple[int, ...]]:
    m, k, n = (draft.integer(1, 4) for _ in range(3))
    batch = draft.shape(0, 2)
    left = (*batch[draft.integer(0, len(batch)) :], m, k)
    right = (*(1 if draft.flip(0.2) else size for size in batch), k, n)
    if draft.flip(0.15):
        left = (k,)
    elif draft.flip(0.15):
        right = (k,)
    return left, right


@recipe("MatMul")
def matmul(draft: Draft) -> None:
    left, right = _factors(draft)
    draft.tensor(0, left)
    draft.tensor(1, right)


@recipe("Gemm")
def gemm(draft: Draft) -> None:
    m, k, n = (draft.integer(1, 4) for _ in range(3))
    transposed = [draft.maybe(name, (0, 1), 0) for name in ("transA", "transB")]
    draft.tensor(0, (k, m) if transposed[0] else (m, k))
    draft.tensor(1, (n, k) if transposed[1] else (k, n))
    if "broadcast" in draft.schema.attributes:
        if draft.flip():
            draft.attributes["broadcast"] = 1
            draft.tensor(2, draft.pick(((n,), (1, n), (1,))))
        else:
            draft.tensor(2, (m, n))
    elif draft.opset < 11 or draft.flip(0.7):
        draft.tensor(2, draft.pick(((m, n), (n,), (1, n), (m, 1), (), (1,))))


_EQUATIONS = (
    ("ij,jk->ik", "ij", "jk"), ("bij,bjk->bik", "bij", "bjk"), ("ij->ji", "ij"), ("ij->", "ij"), ("ii->i", "ii"),
    ("i,j->ij", "i", "j"), ("ij,j", "ij", "j"), ("bij,bkj->bik", "bij", "bkj"), ("...ij,...jk->...ik", "bij", "bjk"),
    ("ij->j", "ij"), ("bhid,bhjd->bhij", "bhid", "bhjd"), ("i,i->", "i", "i"), ("ij,ij->ij", "ij", "ij"),
)  # fmt: skip


@recipe("Einsum")
def einsum(draft: Draft) -> None:
    equation, *terms = draft.pick(_EQUATIONS)
    sizes = {letter: draft.integer(1, 3) for letter in "bdhijk"}
    for position, term in enumerate(terms):
        draft.tensor(position, [sizes[letter] for letter in term], edge=False)
    draft.attributes["equation"] = equation
