"""From a PyTorch module to a verified model for opset 13 (pip install torch onnxscript reducelower)."""

from __future__ import annotations

import sys

import onnx
import torch

import reducelower


class Scores(torch.nn.Module):
    """Layer normalization, a norm and a logsumexp, which opset 13 lacks or has in another form."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(self.norm(x))
        return torch.logsumexp(hidden / (hidden.norm(dim=-1, keepdim=True) + 1), dim=1)


def main(path: str = "out/pytorch_13.onnx") -> onnx.ModelProto:
    program = torch.onnx.export(Scores().eval(), (torch.randn(2, 5, 8),), dynamo=True, opset_version=18)
    model = program.model_proto
    older = reducelower.convert_version(model, 13)
    verification = reducelower.verify(model, older)
    print(verification)
    assert verification.equivalent
    onnx.save(older, path)
    return older


if __name__ == "__main__":
    main(*sys.argv[1:])
