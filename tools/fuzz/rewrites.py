"""Every way the package rewrites an operator at an opset boundary, and a case that runs it against a runtime.

`rewrites.toml` names, for each, the number of a random case of which a runtime finds source and result equal, or says
which test compares it with numbers worked out by other means. As a program it looks for numbers of those that have
none that holds::

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
    """Each rewrite by name: its operator, the opset version it starts from and the one it goes to.

    A rewrite is what is registered for a boundary, what moves an attribute to an input or back, and what expresses an
    operator where the target does not have it, or withdrew it.
    """
    import reducelower.legalization.graph_pass  # noqa: F401  (importing it registers what there is)

    found = {}
    for op_type in sorted(all_operators()):
        since = versions(op_type)
        for boundary in since[1:]:
            for start, goal in ((boundary - 1, boundary), (boundary, boundary - 1)):
                if schema(op_type, start) is None or schema(op_type, goal) is None:
                    continue
                crossing = registry.crossings(op_type, start, goal)[0]
                if crossing.rewrite or crossing.rules or crossing.moves or crossing.changed_defaults:
                    found[f"{op_type} {start} to {goal}"] = (op_type, start, goal)
        first = next(version for version in since if schema(op_type, version) is not None)
        withdrawn = next((version for version in since if version > first and is_deprecated(op_type, version)), None)
        if withdrawn is not None:
            found[f"{op_type} {withdrawn - 1} to {withdrawn}"] = (op_type, withdrawn - 1, withdrawn)
        elif first > 1 and decompose.is_expressible(op_type):
            found[f"{op_type} {first} to {first - 1}"] = (op_type, first, first - 1)
    return found


@cache
def _read() -> Mapping[str, Mapping[str, object]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def known_numbers() -> Mapping[str, int]:
    """The number of a case that runs a rewrite, by the rewrite's name."""
    return {name: number for name, number in _read()["numbers"].items() if isinstance(number, int)}


def covered_elsewhere() -> Mapping[str, str]:
    """The row that compares a rewrite which no judge runs with numbers of its own, as ``table::claim``, by name."""
    return {name: str(test) for name, test in _read()["tests"].items()}


def case_of(name: str, number: int) -> Case:
    """A case that runs a rewrite.

    Raises:
        NotDrawableError: nothing came of that number.
    """
    from tools.fuzz.generating import node_case

    op_type, start, goal = every_rewrite()[name]
    rng = np.random.default_rng([number, *map(ord, name)])
    return node_case(rng, op_type, start, f"{name}, number {number}", Action("convert", goal))


def _found(name: str) -> int | None:
    """The first number of which a runtime finds source and result equal, and unlike each other; None after some."""
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
    """Whether the conversion changes more than versions."""
    made = case.action.apply(case.model)
    return made.graph != case.model.graph or list(made.functions) != list(case.model.functions)


def main(skipped: Collection[str]) -> None:
    """Look for numbers, and write each into the file; a runtime may end the process at the last name printed."""
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
