"""Shape inference: onnx's own, what it leaves open, and what is asked of it.

`on_demand` answers questions about the types of a model and infers no more than they need. `whole` infers a model, with
its functions. Both run onnx's inference through `shapes`, which helps it over what it does not know, and `protected`,
which keeps it from ending the process; `completion` finds what it leaves open, by the rules of `ranks`.
"""

from reducelower.model.inference.on_demand import ContradictionError, GraphKey, Inference, function_key
from reducelower.model.inference.whole import infer, infer_body, infer_strictly

__all__ = [
    "ContradictionError",
    "GraphKey",
    "Inference",
    "function_key",
    "infer",
    "infer_body",
    "infer_strictly",
]
