"""Facts about values before a model runs: types and shapes with symbolic sizes, and contents of small vectors.

`resolver` follows a value back through the nodes that compute it, by the rules of operators in `shapes`, `contents`,
`element_types` and `contrib`. `sizes` is the arithmetic of sizes, `graphs` are graphs with what they state, and
`inference` is the resolver of a whole model.
"""

from reducelower.types.graphs import Graph, GraphKey
from reducelower.types.inference import Inference, infer
from reducelower.types.known import Known
from reducelower.types.resolver import Resolver
from reducelower.types.sizes import Atoms, Polynomial, Size

__all__ = [
    "Atoms",
    "Graph",
    "GraphKey",
    "Inference",
    "Known",
    "Polynomial",
    "Resolver",
    "Size",
    "infer",
]
