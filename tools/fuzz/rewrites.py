"""Every rewrite of an operator at an opset boundary, with a case that compares source and result in a runtime.

For each, `rewrites.toml` has the number of a random case for which source and result are equal in a runtime, or names
the test that compares it with numbers from elsewhere. As a program it looks for the numbers of rewrites that have no
valid one::

    python -m tools.fuzz.rewrites [NAME OF ONE THAT IS LEFT OUT ...]
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from reducelower.adapters import decompose, registry
from reducelower.model.schemas import all_operators, is_deprecated, schema, versions
from tools.fuzz.case import Action, Case
from tools.fuzz.drawing import NotDrawableError

__all__ = ["case_of", "covered_elsewhere", "every_rewrite", "is_rewritten", "known_numbers"]

_FILE = Path(__file__).with_name("rewrites.toml")
_TRIES = 60


@cache
def every_rewrite() -> Mapping[str, tuple[str, int, int]]:
    """Each rewrite by name: its operator, and the opset versions before and after it.

    A rewrite is registered for a boundary, moves an attribute to an input or back, or expresses an operator that the
    target lacks or has withdrawn.
    """
    import reducelower.legalization.graph_pass  # noqa: F401  (importing it registers the rewrites)

    rewrites = {}
    for op_type in sorted(all_operators()):
        since = versions(op_type)
        for boundary in since[1:]:
            for start, goal in ((boundary - 1, boundary), (boundary, boundary - 1)):
                if schema(op_type, start) is None or schema(op_type, goal) is None:
                    continue
                crossing = registry.crossings(op_type, start, goal)[0]
                if crossing.rewrite or crossing.rules or crossing.moves or crossing.changed_defaults:
                    rewrites[f"{op_type} {start} to {goal}"] = (op_type, start, goal)
        first = next(version for version in since if schema(op_type, version) is not None)
        withdrawn = next((version for version in since if version > first and is_deprecated(op_type, version)), None)
        if withdrawn is not None:
            rewrites[f"{op_type} {withdrawn - 1} to {withdrawn}"] = (op_type, withdrawn - 1, withdrawn)
        elif first > 1 and decompose.is_expressible(op_type):
            rewrites[f"{op_type} {first} to {first - 1}"] = (op_type, first, first - 1)
    return rewrites


@cache
def _read() -> Mapping[str, Mapping[str, object]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def known_numbers() -> Mapping[str, int]:
    """The number of a case that runs a rewrite, by the rewrite's name."""
    return {name: number for name, number in _read()["numbers"].items() if isinstance(number, int)}


def covered_elsewhere() -> Mapping[str, str]:
    """For rewrites that no judge runs: the test row that compares them with known numbers, as ``table::claim``."""
    return {name: str(test) for name, test in _read()["tests"].items()}


def case_of(name: str, number: int) -> Case:
    """A case that runs a rewrite.

    Raises:
        NotDrawableError: the draw of that number failed.
    """
    from tools.fuzz.generating import node_case

    op_type, start, goal = every_rewrite()[name]
    rng = np.random.default_rng([number, *map(ord, name)])
    return node_case(rng, op_type, start, f"{name}, number {number}", Action("convert", goal))


def _found(name: str) -> int | None:
    """The first number whose source and result differ as models and are equal in a runtime; None if not soon found."""
    from tools.fuzz.judging import judge

    for number in range(_TRIES):
        try:
            case = case_of(name, number)
            verdict = judge(case)
        except NotDrawableError:
            continue
        if verdict.kind == "equal" and verdict.judges and is_rewritten(case):
            return number
    return None


def is_rewritten(case: Case) -> bool:
    """Whether the conversion changes more than version numbers."""
    made = case.action.apply(case.model)
    return made.graph != case.model.graph or list(made.functions) != list(case.model.functions)


def main(skipped: Collection[str]) -> None:
    """Look for numbers, and write each into the file. A runtime may crash the process at the last printed name."""
    numbers = dict(known_numbers())
    for name in sorted(set(every_rewrite()) - set(numbers) - set(covered_elsewhere()) - set(skipped)):
        print(name, end=": ", flush=True)
        number = _found(name)
        print("nothing found" if number is None else number, flush=True)
        if number is not None:
            numbers[name] = number
            _write(numbers)


def _write(numbers: Mapping[str, int]) -> None:
    text = _FILE.read_text(encoding="utf-8")
    end = text.index("[tests]")
    begin = text.index("[numbers]")
    listed = "".join(f'"{name}" = {number}\n' for name, number in sorted(numbers.items()))
    _FILE.write_text(f"{text[:begin]}[numbers]\n{listed}\n{text[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
