"""Numbers for strings that repeat: what a dictionary says, whichever way is taken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, helper

from reducelower.model import census, numbering
from reducelower.model.census import Census
from reducelower.model.numbering import numbered

TAG = 0x22  # of NodeProto.op_type


def fields(strings: Sequence[bytes]) -> bytes:
    """A repeated field as protobuf writes it, for strings shorter than 128 bytes."""
    return b"".join(bytes([TAG, len(string)]) + string for string in strings)


def of(strings: Sequence[bytes], after: bytes = b"") -> tuple[list[bytes], list[int]] | None:
    found = numbered(fields(strings) + after, TAG, len(strings))
    return None if found is None else (found[0], found[1].tolist())


def by_dictionary(strings: Sequence[bytes]) -> tuple[list[bytes], list[int]]:
    different = list(dict.fromkeys(strings))
    return different, [different.index(string) for string in strings]


# Few letters, so that strings agree in their beginnings, ends and lengths; 0 and the tag are among them.
TEXT = st.binary(max_size=23).map(lambda text: bytes(b"ab\0R"[letter & 3] for letter in text))


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT, max_size=60), st.binary(max_size=30))
def test_what_a_dictionary_says(strings: list[bytes], after: bytes) -> None:
    assert of(strings, after) in (by_dictionary(strings), None)
    # Two of sixty strings seldom have one hash: what is found is not always nothing.
    assert len(set(strings)) > 1 or of(strings, after) == by_dictionary(strings)


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_strings_are_numbered_in_chunks(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(numbering, "_CHUNK", chunk)
    strings = [b"Abs", b"Neg", b"Abs", b"Tanh", b"", b"Neg", b"Abs", b"", b"Exp"]
    assert of(strings) == by_dictionary(strings)
    assert of(strings[:7], after=fields([b"Log"])) == by_dictionary(strings[:7])
    assert of([b"Abs", b"Neg", b'a"c', b"Abs"]) is None  # a tag inside, at the end of a chunk


def test_every_operator_of_onnx() -> None:
    names = sorted({schema.name.encode() for schema in onnx.defs.get_all_schemas_with_history()})
    short = [name for name in names if len(name) < 24]
    assert len(short) > 200
    for start in range(0, len(short), 40):
        group = short[start : start + 40] * 3
        assert of(group) == by_dictionary(group)


@pytest.mark.parametrize(
    "strings",
    [
        [b"Abs", b"a" * 24],
        [b"Abs", b"a" * 127],
        [b'a"b', b"Abs"],
        [b"a" * 34, b"Abs"],
    ],
    ids=["24 bytes", "127 bytes", "the tag inside", "the tag as a length"],
)
def test_what_cannot_be_read_this_way_is_left_alone(strings: list[bytes]) -> None:
    assert of(strings) is None
    assert of([b"Abs", *strings] * 2) is None


def test_two_strings_of_one_hash_are_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_BITS", 1)
    strings = [b"Abs", b"Neg", b"Tanh", b"Abs"]
    assert of(strings) is None
    assert of([b"Abs"] * 3) == ([b"Abs"], [0, 0, 0])


def test_what_stands_in_front_of_the_strings_is_not_skipped() -> None:
    assert numbered(b"\x0a\x01x" + fields([b"Abs", b"Neg"]), TAG, 2) is None


@pytest.mark.parametrize("length", range(24))
def test_all_bytes_of_a_string_count(length: int) -> None:
    strings = [b"x" * length] + [b"x" * at + b"y" + b"x" * (length - at - 1) for at in range(length)]
    assert of(strings) == by_dictionary(strings)


def model(op_types: Sequence[str], domain: str = "") -> ModelProto:
    nodes = [helper.make_node(op_type, ["x"], ["y"], domain=domain) for op_type in op_types]
    return helper.make_model(helper.make_graph(nodes, "g", [], []))


NAMES = {
    "plain": ["Abs", "ReduceLogSumExp", "Abs", "Neg"],
    "long": ["Abs", "DynamicQuantizeLinearAndMore", "Neg", "Abs"],
    "quoted": ['Abs"', 'Neg"\x03', "Abs", "Neg"],
    "empty": ["", "Abs", "", ""],
}


@pytest.mark.parametrize("domain", ["", "com.microsoft", 'a"b'])
@pytest.mark.parametrize("names", NAMES)
def test_large_graphs_are_asked_like_small_ones(monkeypatch: pytest.MonkeyPatch, names: str, domain: str) -> None:
    serialized = model(NAMES[names] * 3, domain).SerializeToString()
    found = []
    for many in (0, 1000):
        monkeypatch.setattr(census, "_MANY", many)
        taken = Census.of_model(serialized)
        wanted = taken.positions({"Abs", "ReduceLogSumExp"}.__contains__)
        found.append((taken.is_even, taken.is_plain, taken.operators, wanted))
    assert found[0] == found[1]
    assert found[0][2] == list(dict.fromkeys(NAMES[names]))
    assert found[0][3] == [at for at, name in enumerate(NAMES[names] * 3) if name in ("Abs", "ReduceLogSumExp")]


def test_nodes_without_an_operator_type() -> None:
    given = model(["Abs"] * 3)
    given.graph.node.append(NodeProto(input=["x"], output=["y"]))
    taken = Census.of_model(given.SerializeToString())
    assert not taken.is_even
    assert taken.positions(lambda op_type: False) == [0, 1, 2, 3]


def test_models_of_exporters(monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    for path in sorted(models.glob("*.onnx")):
        serialized = path.read_bytes()
        expected = [node.op_type for node in ModelProto.FromString(serialized).graph.node]
        monkeypatch.setattr(census, "_MANY", 0)
        taken = Census.of_model(serialized)
        assert sorted(taken.operators) == sorted(set(expected))
        for name in taken.operators:
            assert taken.positions(name.__eq__) == [at for at, each in enumerate(expected) if each == name]
