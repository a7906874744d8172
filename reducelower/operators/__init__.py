"""What operators other than Reduce need at their boundaries: one module per family.

Importing this package registers every rewrite.
"""

from __future__ import annotations

from reducelower.operators import activations, layer_normalization, like

__all__ = ["activations", "layer_normalization", "like"]
