"""Operators on strings."""

from __future__ import annotations

import numpy as np

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe


@recipe("StringNormalizer")
def string_normalizer(draft: Draft) -> None:
    draft.tensor(0, (draft.integer(1, 4),) if draft.flip() else (1, draft.integer(1, 4)))
    draft.maybe("case_change_action", ("NONE", "LOWER", "UPPER"), "NONE")
    draft.maybe("is_case_sensitive", (0, 1), 0)
    if draft.flip():
        draft.attributes["stopwords"] = ["a", "ab"]


@recipe("StringSplit")
def string_split(draft: Draft) -> None:
    draft.data(0, 0, 2)
    draft.maybe("delimiter", (",", " "), "")
    if draft.flip(0.3):
        draft.attributes["maxsplit"] = draft.integer(1, 2)
    draft.outputs = 2


@recipe("RegexFullMatch")
def regex(draft: Draft) -> None:
    draft.data(0)
    draft.attributes["pattern"] = draft.pick((r"[ab]+", r".*", r"\d\.\d"))


@recipe("TfIdfVectorizer")
def tf_idf(draft: Draft) -> None:
    shape = (draft.integer(3, 6),) if draft.flip() else (draft.integer(1, 2), draft.integer(3, 6))
    draft.type_of(0, ("int64", "int32"))
    made = np.asarray(draft.rng.integers(0, 5, shape))
    draft.whole(0, made, parameter=False)
    draft.attributes.update(
        mode=draft.pick(("TF", "IDF", "TFIDF")), min_gram_length=1, max_gram_length=2,
        max_skip_count=draft.integer(0, 1),
        ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[1, 2, 3, 1, 2, 3, 4],
    )  # fmt: skip
    if draft.flip():
        draft.attributes["weights"] = [1.0, 2.0, 0.5, 1.5, 1.0]


@recipe("ImageDecoder")
def image_decoder(draft: Draft) -> None:
    """A bitmap of 2 by 2 pixels of 24 bits, rows padded to four bytes, from the bottom up."""
    header = b"BM" + np.array([70, 0, 54, 40, 2, 2], "<u4").tobytes() + np.array([1, 24], "<u2").tobytes()
    pixels = bytes(range(6)) + b"\0\0" + bytes(range(50, 56)) + b"\0\0"
    draft.give(0, np.frombuffer(header + np.array([0, 16, 0, 0, 0, 0], "<u4").tobytes() + pixels, np.uint8))
    draft.maybe("pixel_format", ("RGB", "BGR", "Grayscale"), "RGB")
