"""Single layers and functions of torch, each with an input for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional


class Function(nn.Module):  # type: ignore[misc,name-defined]  # torch is not installed where types are checked
    """A function as a module."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class First(nn.Module):  # type: ignore[misc,name-defined]
    """A module of which only the first result is used."""

    def __init__(self, module: Any, times: int = 1) -> None:
        super().__init__()
        self.module = module
        self.times = times

    def forward(self, x: Any) -> Any:
        return self.module(*[x] * self.times)[0]


def _data(*shape: int) -> Any:
    return torch.randn(*shape)


_MODULES: Mapping[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(8, 4), (2, 8)),
    "convolution": (lambda: nn.Conv2d(3, 4, 3, padding=1), (2, 3, 8, 8)),
    "convolution of one dimension": (lambda: nn.Conv1d(3, 4, 3, dilation=2), (2, 3, 12)),
    "convolution by groups": (lambda: nn.Conv2d(4, 4, 3, groups=2, stride=2), (2, 4, 9, 9)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 5, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5, 5)),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 5, 5)),
    "layer norm": (lambda: nn.LayerNorm(8), (2, 4, 8)),
    "root mean square norm": (lambda: nn.RMSNorm(8), (2, 4, 8)),
    "local response norm": (lambda: nn.LocalResponseNorm(3), (2, 5, 4, 4)),
    "max pool": (lambda: nn.MaxPool2d(3, 2, padding=1), (2, 3, 8, 8)),
    "average pool": (lambda: nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), (2, 3, 8, 8)),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 8, 8)),
    "norm pool": (lambda: nn.LPPool2d(2, 2), (2, 3, 8, 8)),
    "nearest upsampling": (lambda: nn.Upsample(scale_factor=2), (1, 3, 4, 4)),
    "bilinear upsampling": (lambda: nn.Upsample(size=(7, 9), mode="bilinear"), (1, 3, 4, 4)),
    "bicubic upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), (1, 3, 4, 4)),
    "pixel shuffle": (lambda: nn.PixelShuffle(2), (1, 8, 3, 3)),
    "LSTM": (lambda: First(nn.LSTM(4, 5, batch_first=True)), (2, 6, 4)),
    "GRU": (lambda: First(nn.GRU(4, 5, bidirectional=True)), (6, 2, 4)),
    "plain recurrent layer": (lambda: First(nn.RNN(4, 5)), (6, 2, 4)),
    "attention": (lambda: First(nn.MultiheadAttention(8, 2, batch_first=True), 3), (2, 5, 8)),
    "transformer layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    "GELU": (lambda: nn.GELU(), (2, 8)),
    "GELU by tanh": (lambda: nn.GELU("tanh"), (2, 8)),
    "hard swish": (lambda: nn.Hardswish(), (2, 8)),
    "Mish": (lambda: nn.Mish(), (2, 8)),
    "CELU": (lambda: nn.CELU(0.5), (2, 8)),
    "soft shrink": (lambda: nn.Softshrink(), (2, 8)),
    "PReLU": (lambda: nn.PReLU(4), (2, 4, 3)),
    "softmax": (lambda: nn.Softmax(1), (2, 4, 3)),
    "log-softmax": (lambda: nn.LogSoftmax(-1), (2, 4, 3)),
    "reflection pad": (lambda: nn.ReflectionPad2d(2), (1, 3, 6, 6)),
}

_FUNCTIONS: Mapping[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "log of sum of exponentials": (lambda x: torch.logsumexp(x, (1, 2)), (2, 3, 4)),
    "norm": (lambda x: x.norm(dim=-1, keepdim=True), (2, 3, 4)),
    "norm of ones": (lambda x: torch.linalg.vector_norm(x, 1, dim=(0, 2)), (2, 3, 4)),
    "normalized": (lambda x: functional.normalize(x, dim=1), (2, 3, 4)),
    "sum": (lambda x: x.sum((0, -1)), (2, 3, 4)),
    "product": (lambda x: x.prod(1), (2, 3, 4)),
    "mean of all": (lambda x: x.mean(), (2, 3, 4)),
    "largest and smallest": (lambda x: (x.amax((1, 2)), x.amin(0, keepdim=True)), (2, 3, 4)),
    "variance": (lambda x: x.var(1, unbiased=True), (2, 5, 4)),
    "standard deviation": (lambda x: x.std(-1), (2, 5, 4)),
    "largest with place": (lambda x: x.max(1), (2, 5, 4)),
    "arg max": (lambda x: x.argmax(1), (2, 5, 4)),
    "running sum": (lambda x: x.cumsum(1), (2, 5, 4)),
    "top of": (lambda x: x.topk(3, 1), (2, 5, 4)),
    "sorted": (lambda x: x.sort(1, descending=True), (2, 5, 4)),
    "gathered": (lambda x: x.gather(1, torch.tensor([[0, 2], [1, 1]])), (2, 5)),
    "scattered": (lambda x: x.scatter(1, torch.tensor([[0, 2], [1, 3]]), -1.0), (2, 5)),
    "put by index": (lambda x: x.index_put((torch.tensor([0, 1]), torch.tensor([2, 0])), torch.zeros(2)), (2, 5)),
    "picked by mask": (lambda x: torch.where(x > 0, x, x * 0.1), (2, 5)),
    "clamped": (lambda x: x.clamp(-0.5), (2, 5)),
    "sliced": (lambda x: x[:, 1:-1:2, None], (2, 7)),
    "flipped": (lambda x: x.flip(1), (2, 5)),
    "rolled": (lambda x: x.roll(2, 1), (2, 5)),
    "triangle": (lambda x: x.tril(-1), (2, 5, 5)),
    "sum of products by letters": (lambda x: torch.einsum("bij,bkj->bik", x, x), (2, 3, 4)),
    "stacked and split": (lambda x: torch.stack(x.chunk(2, 1), 0), (2, 6)),
    "unfolded": (lambda x: functional.unfold(x, 3), (1, 2, 6, 6)),
    "distance": (lambda x: torch.cdist(x, x), (2, 3, 4)),
    "grid sample": (
        lambda x: functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False),
        (1, 3, 4, 4),
    ),
    "remainder and sign": (lambda x: (x.remainder(0.7), x.sign(), x.round()), (2, 5)),
    "logarithm of one more": (lambda x: torch.log1p(x.abs()), (2, 5)),
    "hot": (lambda x: functional.one_hot((x.abs() * 2).long() % 5, 5).float(), (2, 3)),
}


def _with(make: Callable[[], Any], shape: tuple[int, ...]) -> Callable[[], tuple[Any, Any]]:
    return lambda: (make(), _data(*shape))


LAYERS: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    **{name: _with(make, shape) for name, (make, shape) in _MODULES.items()},
    **{name: _with(lambda run=run: Function(run), shape) for name, (run, shape) in _FUNCTIONS.items()},  # type: ignore[misc]
}
