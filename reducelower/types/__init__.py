"""What is known about values before a model runs: types and shapes, with sizes as names, and contents of small vectors.

`resolver` follows a value back to what computes it, node by node, and `answers` says how. `shapes` and `elements` say
how each operator passes sizes on, `sizes` is their arithmetic, and `graphs` and `model_graphs` are the graphs of a
model. `inference` asks for all values of a model.
"""

from reducelower.types.graphs import Graph, Held
from reducelower.types.inference import Inference, infer, infer_strictly, inference_of
from reducelower.types.known import ContradictionError, Known
from reducelower.types.model_graphs import GraphKey, function_key
from reducelower.types.resolver import Resolver
from reducelower.types.sizes import Atoms, Polynomial, Size

__all__ = [
    "Atoms",
    "ContradictionError",
    "Graph",
    "GraphKey",
    "Held",
    "Inference",
    "Known",
    "Polynomial",
    "Resolver",
    "Size",
    "function_key",
    "infer",
    "infer_strictly",
    "inference_of",
]
