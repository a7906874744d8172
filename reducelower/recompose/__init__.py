"""The reverse of `reducelower.expand`: fold primitive forms into the composite operators they spell out.

A form is the body of a rule, from the rule books or from `rules/forms`, which has the forms that people write by hand.
To know what a form looks like in a model, the engine expands one node of the operator. So a match has the nodes that
`expand` would write, apart from names, at every opset version and element type.

`run` has the public functions. `raiser` takes one graph after the other, and chooses among the matches that `search`
finds: of overlapping ones the largest wins. `composites` and `operands` decide whether a match is the
operator, and build the replacement. `expansions` has the forms of rules, `expressions` those written by hand.
"""

from __future__ import annotations

from reducelower.recompose.run import known_operators, raise_reductions, raise_with_plan

__all__ = ["known_operators", "raise_reductions", "raise_with_plan"]
