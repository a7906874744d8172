"""The conformance suite: operators, opset versions and depth; the same on every machine.

The cases of reductions are in `reduce_cases`. Those of the operators that replacements of reductions consist of decide
which replacement is right on a runtime. Their forms are in `part_cases.toml`, and their expected values are those of
onnx's reference implementation, in double or in the integers' own type, rounded to the element type.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from reducelower.conformance.case import Case, make_case, takes
from reducelower.conformance.reduce_cases import Depth, reduce_cases
from reducelower.model.numbers import Array
from reducelower.model.schemas import REDUCTIONS, latest_opset, parse_element_type, schema
from reducelower.numerics.measure import element_type_of

__all__ = ["OLDEST", "PARTS", "newest_official_opset", "suite"]

_TABLE = tomllib.loads((files(__package__) / "part_cases.toml").read_text("utf-8"))

PARTS = tuple(sorted({operator for form in _TABLE["form"] for operator in form["operators"].split()}))
"""The operators, sorted."""


def part_cases(operator: str, opset: int) -> Iterator[Case]:
    """The cases of an operator at an opset version, without types that the version lacks."""
    if schema(operator, opset) is None:
        return
    for form in _TABLE["form"]:
        kinds = form["types"].split() if operator in form["operators"].split() else ()
        for kind in kinds:
            for goal in form.get("to", "").split() or [""]:
                fed = [_typed(_TABLE["values"][each] if isinstance(each, str) else each, kind) for each in form["fed"]]
                if operator == "Where" or takes(operator, opset, element_type_of(fed[0])):
                    yield _case(operator, opset, form, kind, goal, fed)


def _typed(value: Any, element_type: str) -> Array:
    """Floats as an array of an element type; whole numbers as int64."""
    array = np.asarray(value)
    if array.dtype != np.float64:
        return array
    return array > 0 if element_type == "bool" else array.astype(_dtype(element_type))


def _dtype(element_type: str) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(parse_element_type(element_type))


def _case(operator: str, opset: int, form: Mapping[str, Any], kind: str, goal: str, fed: Sequence[Array]) -> Case:
    inputs = dict(zip("xyz", fed, strict=False))
    constants = {name: _typed(value, kind) for name, value in form.get("constants", {}).items()}
    attributes: dict[str, Any] = {"axis": form["axis"]} if "axis" in form else {}
    if operator == "Cast":
        attributes["to"] = parse_element_type(goal)
    elif operator == "CastLike":
        constants["like"] = _typed(1.0, goal)
    elif operator in ("Squeeze", "Unsqueeze") and opset < 13:
        attributes, constants = {name: value.tolist() for name, value in constants.items()}, {}
    node = helper.make_node(operator, [*inputs, *constants], ["result"], name="part", **attributes)
    nodes = [node]
    if operator == "Where":  # its condition is computed, since a runtime may take no bools as inputs
        nodes.insert(0, helper.make_node("Greater", ["a", "b"], ["condition"]))
        node.input.insert(0, "condition")
        values = _TABLE["values"]
        inputs = {"a": _typed(values["mixed"], "float"), "b": _typed(values["other"], "float"), **inputs}
    expected = _computed(nodes, opset, {**inputs, **constants})
    if expected.dtype == np.float64:
        expected = expected.astype(_dtype(goal or kind))
    name = f"{kind} to {goal}" if goal else f"{kind} {form.get('name', '')}".strip()
    tag = "huge" if "huge" in name else ""
    return make_case(name, nodes, opset, inputs, [expected], initializers=constants, tag=tag)


def _computed(nodes: Sequence[NodeProto], opset: int, values: Mapping[str, Array]) -> Array:
    """The result of the nodes, with floats computed in double."""
    from onnx.reference import ReferenceEvaluator  # slow to import

    graph = helper.make_graph(nodes, "part", [ValueInfoProto(name=name) for name in values], [])
    graph.output.add(name="result")
    wide = {name: value.astype(np.float64) if value.dtype.kind == "f" else value for name, value in values.items()}
    with np.errstate(all="ignore"):
        results: Any = ReferenceEvaluator(graph, opsets={"": opset}).run(None, wide)
    return np.asarray(results[0])


OLDEST = 7
"""The oldest opset version that today's runtimes claim to read."""

# The Reduce operators changed at 11, 13 and 18 (all of them) and at 12 and 20 (Max and Min). A runtime may still have
# an importer for each version in between; the plain form shows that.
_DEPTHS: dict[int, Depth] = {11: "thorough", 13: "thorough", 18: "thorough", 9: "brief", 17: "brief", 20: "brief"}

_PART_OPSETS = (11, 13, 18, 20)


@cache
def newest_official_opset() -> int:
    """The newest opset version of a released onnx, as far as the installed one knows."""
    released = max(int(row[2]) for row in helper.VERSION_TABLE)
    return min(released, latest_opset())


def suite(operators: Collection[str] | None = None) -> list[Case]:
    """Every case of some operators (by default all), in the order in which they run.

    Raises:
        ValueError: there are no cases of an operator.
    """
    known = (*REDUCTIONS, *PARTS)
    wanted = frozenset(known if operators is None else operators)
    if unknown := sorted(wanted.difference(known)):
        raise ValueError(f"the suite has no models of {', '.join(unknown)}; it has those of {', '.join(known)}")
    cases: list[Case] = []
    for opset in range(OLDEST, newest_official_opset() + 1):
        for operator in REDUCTIONS:
            if operator in wanted:
                cases += reduce_cases(operator, opset, _DEPTHS.get(opset, "plain"))
    for opset in _PART_OPSETS:
        for operator in PARTS:
            if operator in wanted:
                cases += part_cases(operator, opset)
    return cases
