"""What operators need at the boundaries between their versions.

`registry` takes a node across one boundary, by the schemas and by what modules of `ops` register with `lowers` and
`raises`; `changes` lists what schemas do not say. `decompose` writes an operator that the target lacks with others, and
`casts` computes in an element type that the target takes. Adapters write their nodes with the `Writer` of `builder`.
"""
