"""Write the body of a boundary rule for one node: what is known of the node is computed, and the rest is written.

A body is for the general case. Constants, known sizes and ranks go in as numbers, an If whose condition is known
becomes one of its branches, helpers are written out. Besides ONNX's operators a body may use a few of the engine's own:

- ``Self``: the operator that is replaced, with the attributes of the node that the rule does not name;
  ``least_outputs`` says how many outputs it has even if nothing reads them;
- ``Rank (x)``: the number of dimensions; ``Given (x)``: whether the node has that input;
- ``Answer <to>``: what a guard comes to, true, false or a number; it names what its function calls inputs of the rule;
- ``Known (x)``: whether a value is a number in what is written;
- ``IsEmpty (x)``: whether a tensor has no elements, false where it cannot be without;
- ``SizeAlong <axis> (x)``: one size, as a list; ``Listed (x)``: a list, of what may be a scalar;
- ``ReshapeTo (x, shape)``: a Reshape to sizes that may be zero;
- ``Fold <step, over>``: a helper once for each number in a list, which gets it as ``at``, on what the last one gave;
  without ``over`` once for each further input of the node, which it gets as its last;
- ``Refuse <reason, hint>``: the node is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import AttributeProto, FunctionProto, NodeProto

from reducelower.rulebook.asked import Asked
from reducelower.rulebook.own_operators import OWN
from reducelower.rulebook.reading import Source
from reducelower.rulebook.simplify import Simplified
from reducelower.rulebook.writer import BodyWriter

__all__ = ["specialized", "with_all"]


def specialized(
    function: FunctionProto,
    helpers: Mapping[str, Source],
    asked: Asked,
    known_inputs: Iterable[str] = (),
    bound: Mapping[str, AttributeProto] | None = None,
    *,
    as_it_stands: bool = False,
) -> Simplified:
    """The body for a node.

    Args:
        function: the rule, or the body in an operator's schema.
        helpers: functions that it may call.
        asked: the node.
        known_inputs: inputs whose constant values it computes with.
        bound: further attributes, which the engine gives.
        as_it_stands: whether sizes and element types of the node stay out of it, so that it serves many nodes.
    """
    return BodyWriter(function, helpers, asked, set(known_inputs), bound or {}, as_it_stands, OWN).written()


def with_all(function: FunctionProto, node: NodeProto) -> FunctionProto:
    """A rule with as many inputs and outputs as the node: further ones follow the last, under its name."""
    more_in, more_out = len(node.input) - len(function.input), len(node.output) - len(function.output)
    if max(more_in, more_out) <= 0 or not (function.input or more_in <= 0):
        return function
    whole = FunctionProto()
    whole.CopyFrom(function)
    whole.input.extend(f"{function.input[-1]}_and_{place}" for place in range(more_in))
    whole.output.extend(f"{function.output[-1]}_and_{place}" for place in range(more_out))
    return whole
