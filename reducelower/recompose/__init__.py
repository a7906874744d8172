"""The way back from `reducelower.expand`: primitive forms become the composite Reduce operator they spell out.

A form is the body of a rule: of the rule books, and of `rules/forms`, which holds what people write by hand. What a
form looks like in a model is asked of the engine itself, by letting it expand one node of the operator; so the nodes
that are found are those that `expand` would put there, names apart, whatever the opset version and element type.

The way of a model: `run` (the public functions), `raiser` (graph by graph), `composing` (an `automaton` marks forms,
`search` looks closer; of forms that overlap the largest is taken), `composites` and `operands` (whether it is the
operator, and what replaces it). `expansions` gives the forms of rules, `expressions` those that people write by hand.
"""

from __future__ import annotations

from reducelower.recompose.run import BOOKS, known_operators, raise_reductions, raise_with_plan

__all__ = ["BOOKS", "known_operators", "raise_reductions", "raise_with_plan"]
