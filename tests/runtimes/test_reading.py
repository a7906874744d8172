"""Target files: what they can say, and what is said about what they cannot."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reducelower.runtimes import Ranges, TargetError, Versions, load_runtime, read_runtime
from tests.runtimes.toaster import HEAD

TABLE = tomllib.loads(Path(__file__).with_name("reading.toml").read_text("utf-8"))
FACT = """
[[fact]]
says = "ReduceL1 reduces every axis."
operators = ["ReduceL1"]
opsets = "13-17"
is = "wrong"
when = { axes = ["attribute"], keepdims = ["0", "unset"], rank = "3-", all_axes = false, element_types = ["float"] }
evidence = { measured = "toaster 1.0", on = 2026-11-21 }
"""


RANGES = [(kind, *row) for kind, name in ((Ranges, "ranges"), (Versions, "versions")) for row in TABLE[name]]


@pytest.mark.parametrize(("kind", "text", "inside", "outside"), RANGES)
def test_ranges(kind: Any, text: str, inside: list[Any], outside: list[Any]) -> None:
    ranges = kind.parse(text)
    assert all(each in ranges for each in inside)
    assert not any(each in ranges for each in outside)
    assert str(ranges) == text


def test_a_whole_file() -> None:
    found = read_runtime(HEAD + "ir_version = 8\n" + FACT)
    assert (found.name, found.version, found.prefer, found.ir_version) == ("toaster", "1.0", 13, 8)
    assert 21 in found.reads
    assert 22 not in found.reads
    (fact,) = found.facts
    assert fact.outcome == "wrong"
    assert fact.evidence.on == date(2026, 11, 21)
    assert str(fact.evidence) == "measured on toaster 1.0, 2026-11-21"
    assert fact.when.keepdims == {"0", "unset"}
    assert fact.when.all_axes is False
    assert fact.concerns("ReduceL1", 13)
    assert not fact.concerns("ReduceL1", 18)
    assert not fact.concerns("ReduceL2", 13)


@pytest.mark.parametrize(
    ("written", "concerned"), [("Reduce*", ["ReduceL1", "ReduceMax"]), ("*", ["ReduceL1", "ReduceMax", "Add"])]
)
def test_a_family_of_operators(written: str, concerned: list[str]) -> None:
    (fact,) = read_runtime(HEAD + FACT.replace('["ReduceL1"]', f'["{written}"]')).facts
    assert [name for name in ("ReduceL1", "ReduceMax", "Add") if fact.concerns(name, 13)] == concerned


def test_extends_another(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(HEAD + FACT)
    own = tmp_path / "own.toml"
    own.write_text('extends = "base.toml"\n[runtime]\nname = "own"\n[opsets]\nprefer = 11\n' + FACT.replace("L1", "L2"))
    found = load_runtime(own)
    assert (found.name, found.version, found.prefer) == ("own", "1.0", 11)
    assert [sorted(fact.operators) for fact in found.facts] == [["ReduceL1"], ["ReduceL2"]]


@pytest.mark.parametrize("other", ["own.toml", "missing.toml", "nothing"])
def test_extends_nothing_there(tmp_path: Path, other: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'extends = "{other}"\n' + HEAD)
    with pytest.raises(TargetError, match="extends"):
        load_runtime(own)


def test_files_that_extend_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n' + HEAD)
    (tmp_path / "b.toml").write_text('extends = "a.toml"\n' + HEAD)
    with pytest.raises(TargetError, match="extends"):
        load_runtime(tmp_path / "a.toml")


def test_versions(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text(HEAD + '[versions."0.9"]\nreads = "7-11"\nir_version = 6\n')
    text = path.read_text()
    older = read_runtime(text, version="0.9")
    assert (older.version, str(older.reads), older.prefer, older.ir_version) == ("0.9", "7-11", 11, 6)
    assert read_runtime(text, version="1.0").prefer == 13


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be read: No such file"):
        load_runtime(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("low", "high", "text"), [(0, 0, "0"), (None, 0, "0"), (None, 3, "-3"), (0, 3, "-3"), (4, None, "4-"), (2, 2, "2")]
)
def test_a_range_between_two_numbers_is_written_shortly(low: int | None, high: int | None, text: str) -> None:
    assert str(Ranges.between(low, high)) == text
    assert Ranges.parse(text) == Ranges.between(low, high)


@pytest.mark.parametrize("kind", [Ranges, Versions])
@pytest.mark.parametrize("text", ["", "-", "1..2", "one", "3-2", "1 2", "1-2-3", "7,"])
def test_what_is_no_range(kind: type[Ranges | Versions], text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a range|ends before it starts"):
        kind.parse(text)


VERSIONED = HEAD + FACT.replace("opsets =", 'versions = "0.7-0.9"\nopsets =')
OLDER = '\n[versions]\n"0.8" = { reads = "9-13", ir_version = 7 }\n"0.6" = { reads = "9-12", prefer = 11 }\n'


@pytest.mark.parametrize(("version", "facts"), [("0.8", 1), ("0.8.2", 1), ("0.6", 0), (None, 0), ("1.0", 0)])
def test_a_fact_is_true_of_the_versions_that_it_names(version: str | None, facts: int) -> None:
    assert len(read_runtime(VERSIONED + OLDER, version=version).facts) == facts


def test_a_release_is_taken_for_the_version_it_belongs_to() -> None:
    found = read_runtime(VERSIONED + OLDER, version="0.8.2")
    assert (str(found), found.prefer, found.ir_version) == ("toaster 0.8.2", 13, 7)
    assert read_runtime(VERSIONED + OLDER, version="0.6").prefer == 11


@pytest.mark.parametrize(("version", "reads", "facts", "note"), TABLE["unmeasured"])
def test_a_version_without_an_entry_gets_the_facts_of_its_neighbours(
    version: str, reads: str, facts: int, note: str
) -> None:
    found = read_runtime(VERSIONED + OLDER, version=version)
    assert (found.name, found.version, str(found.reads), len(found.facts)) == ("toaster", version, reads, facts)
    assert found.note == note


@pytest.mark.parametrize(("version", "meant"), [("0", "0.8"), ("1", "1.0"), ("0.6", "0.6")])
def test_the_beginning_of_a_version_means_the_newest_that_begins_so(version: str, meant: str) -> None:
    found = read_runtime(VERSIONED + OLDER, version=version)
    assert (found.version, found.note) == (meant, "")


@pytest.mark.parametrize("version", ["latest", "", "beta"])
def test_a_version_without_a_number_is_refused(version: str) -> None:
    with pytest.raises(TargetError, match=f"'{version}' is no version; write numbers"):
        read_runtime(VERSIONED + OLDER, version=version)


def test_a_file_about_no_version_says_so_of_any() -> None:
    found = read_runtime((HEAD + FACT).replace('version = "1.0"\n', ""), version="3")
    assert (found.version, found.note) == ("3", "Its facts are about no version in particular.")


def test_facts_about_versions_ask_for_the_version_that_a_file_is_about() -> None:
    with pytest.raises(TargetError, match=r"runtime\.version: is missing"):
        read_runtime(VERSIONED.replace('version = "1.0"\n', "") + OLDER)
