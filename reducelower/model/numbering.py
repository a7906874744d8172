"""Number the distinct strings of a column, vectorized.

Making Python strings of the operator types of 50,000 nodes and looking each up takes as long as parsing the nodes. Here
whole columns are compared at once, as integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["numbered"]

_WORDS = 3
"""Words of eight bytes that hold a string after its length: strings of up to 23 bytes."""

_CHUNK = 1 << 16
"""Strings per step: few enough for the arrays to stay in the processor's cache."""

_BITS = 16
"""Bits of a string's hash. Among 50 distinct strings, two collide with a chance of one in fifty."""

# Odd multipliers that spread every byte to the highest bits: 2^64 over the golden ratio, and two primes.
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


def _masks() -> NDArray[np.uint64]:
    """For each word and each string length, the bits of the word that belong to the string."""
    held = np.clip(np.arange(8 * _WORDS)[None, :] + 1 - 8 * np.arange(_WORDS)[:, None], 0, 8)
    full = np.uint64(2**64 - 1)
    return np.where(held > 0, full >> (8 * (8 - np.maximum(held, 1))).astype(np.uint64), np.uint64(0))


_MASKS = _masks()


def numbered(fields: bytes, tag: int, count: int) -> tuple[list[bytes], NDArray[np.int32]] | None:
    """Number the strings of one repeated field, as protobuf writes it.

    The bytes begin with `count` strings, each after the same one-byte tag. Returns the distinct strings in order of
    appearance, and for each string its index among them. Returns None if a string is longer than 23 bytes, if a tag
    cannot be told from a string's contents, or if two strings have the same hash.
    """
    codes: dict[bytes, int] = {}
    stated = np.empty(count, np.int32)
    heads = np.flatnonzero(np.frombuffer(fields, np.uint8) == tag)[:count] + 1
    padded = fields + bytes(8 * _WORDS)
    if len(heads) < count or (count and heads[0] != 1):
        return None
    for start in range(0, count, _CHUNK):
        # Each string must begin where the one before ends; otherwise a tag was found inside a string. The first string
        # of the next chunk shows where the last one ends.
        found = _numbered(padded, heads[start : start + _CHUNK + 1], min(count - start, _CHUNK))
        if found is None:
            return None
        strings, numbers = found
        places = np.array([codes.setdefault(string, len(codes)) for string in strings], np.int32)
        stated[start : start + _CHUNK] = places[numbers]
    return list(codes), stated


def _numbered(padded: bytes, bounds: NDArray[np.intp], count: int) -> tuple[list[bytes], NDArray[np.intp]] | None:
    """The distinct strings at the first bounds in order of appearance, and the index of each string."""
    heads = bounds[:count]
    lengths = np.frombuffer(padded, np.uint8)[heads].astype(np.intp)
    if lengths.max() >= 8 * _WORDS or (bounds[1:] != (heads + lengths + 2)[: len(bounds) - 1]).any():
        return None
    words = _words(padded, heads, lengths)
    hashes = np.zeros(count, np.uint64)
    for word, factor in zip(words, _FACTORS, strict=False):
        hashes = (hashes ^ word) * factor
    places = (hashes >> np.uint64(64 - _BITS)).astype(np.intp)
    first = np.full(1 << _BITS, -1, np.intp)
    first[places[::-1]] = np.arange(count - 1, -1, -1)
    if any((word[first[places]] != word).any() for word in words):
        return None
    firsts = np.sort(first[first >= 0])
    numbers = np.zeros(1 << _BITS, np.intp)
    numbers[places[firsts]] = np.arange(len(firsts))
    starts = (heads[firsts] + 1).tolist()
    strings = [padded[start : start + length] for start, length in zip(starts, lengths[firsts].tolist(), strict=True)]
    return strings, numbers[places]


def _words(padded: bytes, heads: NDArray[np.intp], lengths: NDArray[np.intp]) -> list[NDArray[Any]]:
    """The strings, each with its length in front, as columns of little-endian words."""
    used = int(lengths.max()) // 8 + 1
    wide = np.ndarray((len(padded) - 8 * used + 1,), f"V{8 * used}", padded, 0, (1,))
    rows = wide[heads].view("<u8").reshape(len(heads), used)
    return [rows[:, word] & _MASKS[word][lengths] for word in range(used)]
