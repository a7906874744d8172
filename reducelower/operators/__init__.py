"""What operators other than Reduce need at their boundaries: one module per family.

Importing this package registers every rewrite.
"""

from __future__ import annotations

from reducelower.operators import activations, batch_normalization, layer_normalization, like

__all__ = ["activations", "batch_normalization", "layer_normalization", "like"]
