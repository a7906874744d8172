"""Write the body of a boundary rule for one node: compute what is known of the node, and write the rest.

A body is written for the general case. Constants, known sizes and known ranks become numbers, an If with a known
condition becomes one of its branches, and helpers are inlined. Besides ONNX's operators there are the engine's own:

- ``Self``: the operator that is replaced, with the attributes of the node that the rule does not name;
  ``least_outputs`` says how many outputs it has even if nothing reads them;
- ``Rank (x)``: the number of dimensions; ``Given (x)``: whether the node has that input;
- ``Answer <to>``: the value of a guard, true, false or a number; its names are those of the function it stands in;
- ``Known (x)``: whether a value is known when the body is written;
- ``IsEmpty (x)``: whether a tensor has no elements; false if that is impossible;
- ``SizeAlong <axis> (x)``: one size, as a list; ``Listed (x)``: a list, of what may be a scalar;
- ``ReshapeTo (x, shape)``: a Reshape to sizes that may be zero;
- ``Fold <step, over>``: calls a helper once for each number in a list, which it gets as ``at``, on its last results;
  without ``over`` once for each further input of the node, which it gets as its last input;
- ``Refuse <reason, hint>``: the node is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, NodeProto

from reducelower.rulebook.asked import Asked
from reducelower.rulebook.own_operators import OWN_OPERATORS
from reducelower.rulebook.reading import Helpers
from reducelower.rulebook.simplify import Simplified
from reducelower.rulebook.writer import BodyWriter

__all__ = ["specialized", "with_all"]


def specialized(
    function: FunctionProto,
    helpers: Helpers,
    asked: Asked,
    known_inputs: Iterable[str] = (),
    *,
    is_general: bool = False,
) -> Simplified:
    """The body for a node.

    Args:
        function: the rule, or the body in an operator's schema.
        helpers: functions that it may call.
        asked: the node.
        known_inputs: inputs whose constant values it computes with.
        is_general: whether the body may not depend on the node's sizes and element types, so that it serves many nodes.
    """
    return BodyWriter(function, helpers, asked, set(known_inputs), is_general, OWN_OPERATORS).written()


def with_all(function: FunctionProto, node: NodeProto) -> FunctionProto:
    """A rule with as many inputs and outputs as the node: more follow the last one and are named after it."""
    more_in, more_out = len(node.input) - len(function.input), len(node.output) - len(function.output)
    if max(more_in, more_out) <= 0 or not (function.input or more_in <= 0):
        return function
    extended = FunctionProto()
    extended.CopyFrom(function)
    extended.input.extend(f"{function.input[-1]}_and_{place}" for place in range(more_in))
    extended.output.extend(f"{function.output[-1]}_and_{place}" for place in range(more_out))
    return extended
