"""The reverse of `reducelower.expand`: fold primitive forms into the composite operators they spell out.

A form is the body of a rule, from the rule books or from `rules/forms`, which has what people write by hand. To know
what a form looks like in a model, the engine expands one node of the operator. So the nodes found are those that
`expand` would write, apart from names, at every opset version and element type.

A model passes through `run` (the public functions), `raiser` (graph by graph), `composing` (`search` finds
them; of overlapping forms the largest wins), `composites` and `operands` (whether it is the
operator, and what replaces it). `expansions` has the forms of rules, `expressions` those written by hand.
"""

from __future__ import annotations

from reducelower.recompose.run import BOOKS, known_operators, raise_reductions, raise_with_plan

__all__ = ["BOOKS", "known_operators", "raise_reductions", "raise_with_plan"]
