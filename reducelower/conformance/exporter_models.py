"""Small models of operators as exporters write them side by side, since runtimes fuse what stands together.

Each operator of them may be right alone.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files

from onnx import ModelProto, parser

__all__ = ["exporter_models"]

_OPSETS = (13, 17)

_COUNTED = re.compile(r"(float\[[\d,]+\] \w+ = ){(\d+)}")


def exporter_models() -> Iterator[tuple[str, ModelProto]]:
    """Each model of `exporter_models.toml` with its name, at the opset versions that exporters wrote for long."""
    known = tomllib.loads((files(__package__) / "exporter_models.toml").read_text("utf-8"))
    for opset in _OPSETS:
        for name, row in known.items():
            weights = _COUNTED.sub(lambda found: f"{found[1]}{{{_values(int(found[2]))}}}", row["weights"])
            head = f'<ir_version: 8, opset_import: ["": {opset}]> pair ({row["inputs"]}) => ({row["outputs"]})'
            yield f"{name}, opset {opset}", parser.parse_model(f"{head} <{weights}> {{{row['nodes']}}}")


def _values(count: int) -> str:
    """So many values as text."""
    return ", ".join(f"{math.sin(1 + 7 * at) / 2:.3f}" for at in range(count))
