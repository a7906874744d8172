"""Small models written in ONNX's text syntax."""

from __future__ import annotations

from onnx import ModelProto, parser


def model(body: str, opset: int = 18, ir_version: int = 8, functions: str = "") -> ModelProto:
    """A model around a graph in ONNX text syntax."""
    imports = f'"": {opset}' + (', "local": 1' if functions else "")
    return parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{imports}]>\n{body}\n{functions}")
