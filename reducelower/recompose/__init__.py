"""The reverse of `reducelower.expand`: fold primitive forms into the composite operators they spell out.

A form is written like a rule, in `rules/forms`: the bodies of the specification, and what people write by hand.

`run` has the public functions. `raiser` takes one graph after the other, and chooses among the matches that `search`
finds: of overlapping ones the largest wins. `composites` and `operands` decide whether a match is the
operator, and build the replacement. `expressions` reads the forms.
"""

from __future__ import annotations

from reducelower.recompose.run import known_operators, raise_reductions, raise_with_plan

__all__ = ["known_operators", "raise_reductions", "raise_with_plan"]
