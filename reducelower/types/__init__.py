"""Facts about values before a model runs: types and shapes with symbolic sizes, and contents of small vectors.

`resolver` follows a value back through the nodes that compute it, and `answers` holds the answer to each question.
`shapes` and `contents` are the rules of operators, `sizes` is the arithmetic of sizes, and `graphs` and `model_graphs`
are the graphs of a model. `inference` resolves all values at once.
"""

from reducelower.types.graphs import Graph, GraphKey
from reducelower.types.inference import contradiction, infer, infer_strictly, inference_of
from reducelower.types.known import Known
from reducelower.types.model_graphs import Inference
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
    "contradiction",
    "infer",
    "infer_strictly",
    "inference_of",
]
