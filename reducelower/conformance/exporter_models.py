"""Small models with operators next to each other as exporters write them, since runtimes fuse neighbours.

Each operator may be right on its own.
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
    """Each model of `exporter_models.toml` with its name, at opset versions that exporters have used for long."""
    rows = tomllib.loads((files(__package__) / "exporter_models.toml").read_text("utf-8"))
    for opset in _OPSETS:
        for name, row in rows.items():
            weights = _COUNTED.sub(lambda match: f"{match[1]}{{{_values(int(match[2]))}}}", row["weights"])
            head = f'<ir_version: 8, opset_import: ["": {opset}]> pair ({row["inputs"]}) => ({row["outputs"]})'
            yield f"{name}, opset {opset}", parser.parse_model(f"{head} <{weights}> {{{row['nodes']}}}")


def _values(count: int) -> str:
    """This many values, as text."""
    return ", ".join(f"{math.sin(1 + 7 * at) / 2:.3f}" for at in range(count))
