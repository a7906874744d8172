"""Products of matrices, and attention."""

from __future__ import annotations

import numpy as np

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values


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


@recipe("MatMulInteger")
def matmul_integer(draft: Draft) -> None:
    left, right = _factors(draft)
    draft.tensor(0, left)
    draft.tensor(1, right)
    for position in (2, 3):
        if draft.flip():
            draft.tensor(position, ())


@recipe("QLinearMatMul")
def qlinear_matmul(draft: Draft) -> None:
    left, right = _factors(draft)
    draft.tensor(0, left)
    draft.tensor(3, right)
    for scale, zero in ((1, 2), (4, 5), (6, 7)):
        dtype = draw_values(draft.rng, draft.type_of(scale), (), edge=False).dtype
        draft.give(scale, np.asarray(draft.integer(1, 8) / 8).astype(dtype), parameter=True)
        draft.give(zero, draw_values(draft.rng, draft.type_of(zero), (), edge=False), parameter=True)


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


@recipe("Det")
def det(draft: Draft) -> None:
    size = draft.integer(1, 3)
    draft.tensor(0, (*draft.shape(0, 2), size, size), edge=False)


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


@recipe("Attention")
def attention(draft: Draft) -> None:
    batch, groups, kv_heads, size = (
        draft.integer(1, 2),
        draft.integer(1, 2),
        draft.integer(1, 2),
        2 * draft.integer(1, 2),
    )
    heads = groups * kv_heads
    queries, keys, past = draft.integer(1, 3), draft.integer(1, 3), draft.integer(1, 2)
    v_size = draft.integer(1, 3)
    with_past = draft.flip(0.3)
    draft.edge = False
    draft.type_of(0)
    draft.types.setdefault("T2", draft.types["T1"])
    if draft.flip():
        draft.tensor(0, (batch, heads, queries, size))
        draft.tensor(1, (batch, kv_heads, keys, size))
        draft.tensor(2, (batch, kv_heads, keys, v_size))
    else:
        draft.tensor(0, (batch, queries, heads * size))
        draft.tensor(1, (batch, keys, kv_heads * size))
        draft.tensor(2, (batch, keys, kv_heads * v_size))
        draft.attributes.update(q_num_heads=heads, kv_num_heads=kv_heads)
    total = keys + (past if with_past else 0)
    if draft.flip():
        draft.types["U"] = draft.pick((draft.types["T1"], "tensor(bool)"))
        shape = draft.pick(((queries, total), (batch, 1, queries, total), (1, heads, queries, total)))
        mask = draft.tensor(3, shape, edge=False)
        if mask.dtype.kind == "b" and mask.size:  # a row without any key has no defined result before opset 24
            draft.give(3, mask | (np.arange(total) == 0))
        elif draft.flip():
            hidden = np.asarray((draft.rng.random(mask.shape) < 0.3) & (np.arange(total) > 0))
            draft.give(3, np.where(hidden, mask.dtype.type(-np.inf), mask).astype(mask.dtype))
    if with_past:
        draft.tensor(4, (batch, kv_heads, past, size))
        draft.tensor(5, (batch, kv_heads, past, v_size))
    for name, choices in (("is_causal", (0, 1)), ("softcap", (0.0, 2.0)), ("scale", (0.5, 1.0))):
        draft.maybe(name, choices, 0)  # type: ignore[type-var]
    if draft.flip(0.3):
        draft.attributes["qk_matmul_output_mode"] = draft.integer(0, 3)
    draft.outputs = draft.pick((1, 1, 3, 4)) if with_past else draft.pick((1, 1, 4))


@recipe("RotaryEmbedding")
def rotary_embedding(draft: Draft) -> None:
    batch, heads, length, size = draft.integer(1, 2), draft.integer(1, 2), draft.integer(1, 3), 2 * draft.integer(1, 3)
    rotary = size
    if draft.flip(0.3):
        rotary = draft.attributes["rotary_embedding_dim"] = 2 * draft.integer(1, size // 2)
    if draft.flip() and "rotary_embedding_dim" not in draft.attributes:
        draft.tensor(0, (batch, length, heads * size))
        draft.attributes["num_heads"] = heads
    else:
        draft.tensor(0, (batch, heads, length, size))
        draft.maybe("num_heads", (heads,), 0)
    if draft.flip():
        entries = draft.integer(length, 5)
        shape: tuple[int, ...] = (entries, rotary // 2)
        draft.give(3, np.asarray(draft.rng.integers(0, entries, (batch, length)), np.int64))
    else:
        shape = (batch, length, rotary // 2)
    for position in (1, 2):
        draft.tensor(position, shape)
    if draft.flip():
        draft.attributes["interleaved"] = draft.integer(0, 1)


@recipe("LinearAttention")
def linear_attention(draft: Draft) -> None:
    batch, heads, length, k, v = draft.integer(1, 2), draft.integer(1, 2), draft.integer(1, 3), 2, draft.integer(1, 2)
    draft.attributes.update(q_num_heads=heads, kv_num_heads=heads)
    draft.tensor(0, (batch, length, heads * k), edge=False)
    draft.tensor(1, (batch, length, heads * k), edge=False)
    draft.tensor(2, (batch, length, heads * v), edge=False)
    rule = draft.maybe("update_rule", ("linear", "gated", "delta", "gated_delta"), "gated_delta")
    draft.types["S"] = draft.types["T"]
    if draft.flip():
        draft.tensor(3, (batch, heads, k, v), edge=False)
    if "gated" in rule:
        draft.tensor(4, (batch, length, heads), edge=False)
    if "delta" in rule:
        draft.tensor(5, (batch, length, heads), edge=False)
    draft.outputs = 2
