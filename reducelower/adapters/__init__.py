"""Adapters: how nodes cross the boundaries between versions of their operators.

`registry` takes a node across one boundary, by the schemas and by the rewrites that modules of `ops` register with
`lowers` and `raises`. `decompose` expresses an operator that the
target lacks by others, and `casts` computes in an element type that the target takes. Adapters write their nodes with
the `Writer` of `builder`.
"""
