"""What is known about values before a model runs: types and shapes, with sizes as names, and contents of small vectors.

`resolver` follows a value back to what computes it, node by node. `operators` says how each operator passes sizes on,
and `sizes` is their arithmetic.
"""

from reducelower.types.known import Known
from reducelower.types.resolver import Atoms, Graph, Held, Resolver, Source
from reducelower.types.sizes import Size

__all__ = ["Atoms", "Graph", "Held", "Known", "Resolver", "Size", "Source"]
