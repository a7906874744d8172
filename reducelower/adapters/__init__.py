"""Adapters: how nodes cross the boundaries between versions of their operators.

`rules` finds and tries the rules for a node. `crossings` takes a node across boundaries, by rules and by the schemas.
`absent` expresses an operator that the target lacks by others, and `casts` computes in an element type that the target
takes. Rules in Python are in `ops`; they write their nodes with the `Writer` of `builder`.
"""
