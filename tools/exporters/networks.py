"""Small networks as people deploy them, each with its inputs: decoders with caches, speech, detection, graphs, tables.

They have what layers and whole transformers lack: several inputs, results whose sizes depend on the data, computed
indices, loops, and branches.
"""

# Compiled functions have types that only torch knows, and no comment after `def`: TorchScript would read it as a type.
# mypy: disable-error-code="misc, name-defined, no-untyped-def"
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
nn, functional = torch.nn, torch.nn.functional


@dataclass(frozen=True)
class Network:
    """A network to be exported.

    Attributes:
        make: makes the module.
        inputs: makes its inputs.
        opsets: the opset versions to export: by tracing, and by dynamo from 18 on.
        is_scripted: whether its loops depend on the data, so that TorchScript compiles it instead.
    """

    make: Callable[[], Any]
    inputs: Callable[[], tuple[Any, ...]]
    opsets: tuple[int, ...] = (14, 17, 18, 23)
    is_scripted: bool = False


class Function(nn.Module):
    """A function of several tensors as a module, with the modules it uses."""

    def __init__(self, function: Callable[..., Any], **modules: Any) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *tensors: Any) -> Any:
        return self.function(self, *tensors)


def _data(*shape: int) -> Any:
    return torch.randn(*shape)


def _numbers(most: int, *shape: int) -> Any:
    return torch.randint(0, most, shape)


# Decoders with a cache of keys and values, one step of several tokens

_DECODER: Mapping[str, Any] = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip


class Decoder(nn.Module):
    """A causal language model with its cache as input and output tensors."""

    def __init__(self, family: str, **settings: Any) -> None:
        super().__init__()
        config = getattr(transformers, f"{family}Config")(**_DECODER, **settings)
        self.model = getattr(transformers, f"{family}ForCausalLM")(config)

    def forward(self, tokens: Any, mask: Any, positions: Any, *past: Any) -> Any:
        cache = transformers.DynamicCache()
        for layer in range(2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        options = {"attention_mask": mask, "position_ids": positions, "past_key_values": cache, "use_cache": True}
        result = self.model(input_ids=tokens, **options)
        return (result.logits, *(part for one in result.past_key_values.layers for part in (one.keys, one.values)))


def _step() -> tuple[Any, ...]:
    past = (_data(2, 2, 4, 4) for _ in range(4))
    mask, positions = torch.ones(2, 7, dtype=torch.int64), torch.arange(4, 7).expand(2, 3).contiguous()
    return _numbers(50, 2, 3), mask, positions, *past


# Speech


class RelativeAttention(nn.Module):
    """Attention of a conformer: relative positions by shifting, with frames beyond the end masked."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.place = nn.Linear(16, 48), nn.Linear(16, 16, bias=False)
        self.content, self.position = nn.Parameter(_data(2, 8)), nn.Parameter(_data(2, 8))

    def forward(self, x: Any, lengths: Any) -> Any:
        batch, time, _ = x.shape
        query, key, value = self.project(x).view(batch, time, 3, 2, 8).unbind(2)
        steps = torch.arange(time - 1, -time, -1).float()[:, None] * torch.exp(torch.arange(8) * -0.5)
        places = self.place(torch.cat([steps.sin(), steps.cos()], 1)).view(-1, 2, 8)
        alike = torch.einsum("bthd,bshd->bhts", query + self.content, key)
        near = torch.einsum("bthd,phd->bhtp", query + self.position, places)
        near = functional.pad(near, (1, 0)).view(batch, 2, -1, time)[:, :, 1:].reshape(batch, 2, time, -1)[..., :time]
        beyond = (torch.arange(time)[None] >= lengths[:, None])[:, None, None]
        weights = (alike + near).masked_fill(beyond, float("-inf")).softmax(-1).masked_fill(beyond, 0.0)
        return torch.einsum("bhts,bshd->bthd", weights, value).reshape(batch, time, 16)


def _collapsed(_: Any, scores: Any) -> Any:
    """The output of a CTC network, without repetitions and blanks."""
    labels = scores.argmax(-1)
    before = torch.cat([torch.full_like(labels[:, :1], -1), labels[:, :-1]], 1)
    is_new = (labels != before) & (labels != 0)
    place = torch.where(is_new, is_new.long().cumsum(1) - 1, torch.full_like(labels, labels.shape[1]))
    empty = torch.zeros(labels.shape[0], labels.shape[1] + 1, dtype=labels.dtype)
    return empty.scatter(1, place, labels)[:, :-1], is_new.long().sum(1), torch.nonzero(is_new)


class Activity(nn.Module):
    """Voice detection: a branch per sampling rate, whose results differ in size."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.slow, self.cell = nn.Conv1d(1, 4, 8, 4), nn.Conv1d(1, 4, 4, 2), nn.LSTMCell(4, 4)

    def forward(self, x, state, rate: torch.Tensor):
        if int(rate) == 16000:  # noqa: SIM108  # a branch, as TorchScript writes it
            heard = self.fast(x[:, None])
        else:
            heard = self.slow(x[:, None])
        hidden, cell = self.cell(heard.relu().mean(2), (state[0], state[1]))
        return torch.sigmoid(hidden), torch.stack([hidden, cell])


class Steps(nn.Module):
    """A recurrent network that appends its results to a list."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(9, 5)

    def forward(self, x, steps: torch.Tensor):
        hidden = torch.zeros(x.size(1), 5)
        found: list[torch.Tensor] = []
        for step in range(int(steps)):
            hidden = torch.tanh(self.mix(torch.cat([x[step], hidden], 1)))
            found.append(hidden)
        return torch.stack(found, 1), torch.cat(found, 1), found[-1], len(found)


# Images


def _centres(self: Any, x: Any) -> Any:
    """Boxes around the peaks of a heat map."""
    heat = self.heat(x).sigmoid()
    heat = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).float()
    batch, _, height, width = heat.shape
    scores, place = torch.topk(heat.view(batch, -1), 5)
    kind, place = place // (height * width), place % (height * width)
    middle = torch.stack([place % width, place // width], 1).float()
    extent = self.extent(x).view(batch, 2, -1).gather(2, place[:, None].expand(-1, 2, -1))
    return torch.cat([middle - extent, middle + extent], 1), scores, kind


def _sampled(_: Any, values: Any, places: Any, weights: Any) -> Any:
    """Deformable attention over two levels."""
    found = []
    for level, (part, (height, width)) in enumerate(zip(values.split([24, 6], 1), ((4, 6), (2, 3)), strict=True)):
        image = part.flatten(2).transpose(1, 2).reshape(2, 4, height, width)
        grid = (2 * places - 1)[:, :, :, level].transpose(1, 2).flatten(0, 1)
        found.append(functional.grid_sample(image, grid, align_corners=False))
    return (torch.stack(found, -2).flatten(-2) * weights.transpose(1, 2).reshape(2, 1, 5, -1)).sum(-1)


def _matched(_: Any, left: Any, right: Any) -> Any:
    """Matching points of two images, by optimal transport and mutual choice."""
    scores = torch.einsum("bdn,bdm->bnm", left, right) / 2
    across, down = torch.zeros_like(scores[:, :, 0]), torch.zeros_like(scores[:, 0])
    for _ in range(3):
        across = -torch.logsumexp(scores + down[:, None], 2)
        down = -torch.logsumexp(scores + across[:, :, None], 1)
    best, back = scores.max(2), scores.max(1)
    is_mutual = torch.arange(scores.shape[1])[None] == back.indices.gather(1, best.indices)
    return torch.where(is_mutual, best.indices, -1), torch.where(is_mutual, best.values.exp(), torch.zeros(()))


def _coloured(_: Any, scores: Any) -> Any:
    """A segmentation at the size of the image, with a class for each pixel."""
    sure, kind = functional.interpolate(scores, scale_factor=4, mode="bilinear").softmax(1).max(1)
    palette = torch.tensor([[0, 0, 0], [128, 0, 0], [0, 128, 0]], dtype=torch.uint8)
    return palette[kind], (sure * 255).to(torch.uint8), functional.one_hot(kind, 3).sum((1, 2))


def _pillars(self: Any, points: Any, counts: Any, cells: Any) -> Any:
    """The points of each pillar combined, and placed at its position."""
    is_there = torch.arange(points.shape[1])[None] < counts[:, None]
    found = (self.embed(points).relu() * is_there[..., None]).amax(1)
    ground = torch.zeros(8, 30)
    ground[:, cells[:, 0] * 6 + cells[:, 1]] = found.t()
    return ground.view(1, 8, 5, 6)


def _rendered(self: Any, origin: Any, direction: Any) -> Any:
    """Colour and depth along rays."""
    depth = torch.linspace(1.0, 3.0, 6)
    points = origin[:, None] + direction[:, None] * depth[:, None]
    waves = [wave(points * 2**octave) for octave in range(2) for wave in (torch.sin, torch.cos)]
    raw = self.field(torch.cat([points, *waves], -1))
    opaque = 1 - torch.exp(-raw[..., 3].relu() * 0.4)
    clear = torch.exp(torch.log(1 - opaque + 1e-10).cumsum(1))
    return ((opaque * clear)[..., None] * raw[..., :3].sigmoid()).sum(1), (opaque * clear * depth).sum(1)


# Graphs and tables


def _attended(self: Any, nodes: Any, edges: Any) -> Any:
    """Graph attention: a softmax over the edges of each node, by scattered maxima and sums."""
    projected = self.project(nodes)
    score = functional.leaky_relu((projected[edges[0]] * self.weight + projected[edges[1]]).sum(-1))
    largest = torch.full((nodes.shape[0],), -1e9).scatter_reduce(0, edges[1], score, "amax")
    power = torch.exp(score - largest[edges[1]])
    total = torch.zeros(nodes.shape[0]).scatter_add(0, edges[1], power)
    share = power / (total[edges[1]] + 1e-16)
    return torch.zeros(nodes.shape[0], 4).index_add(0, edges[1], projected[edges[0]] * share[:, None])


def _crossed(self: Any, kinds: Any, numbers: Any) -> Any:
    """A factorization machine and a cross network."""
    embedded = self.embed(kinds)
    pairs = 0.5 * (embedded.sum(1) ** 2 - (embedded**2).sum(1)).sum(1, keepdim=True)
    first = torch.cat([embedded.mean(1), numbers], 1)
    return torch.sigmoid(pairs + self.deep(first * self.cross(first) + first))


def _acted(self: Any, seen: Any, hidden: Any, allowed: Any) -> Any:
    """A recurrent policy: normalized observations, masked choices, and their entropy."""
    found, hidden = self.memory((seen - seen.mean()) / (seen.std() + 1e-8), hidden)
    scores = self.choose(found).masked_fill(~allowed, -1e8)
    shares = scores.softmax(-1)
    return scores.argmax(-1), -(shares * scores.log_softmax(-1)).sum(-1), torch.tanh(self.move(found)), hidden


def _trained() -> Any:
    """One step of gradient descent as a graph."""
    from torch.fx.experimental.proxy_tensor import make_fx

    module = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    weights = {name: weight.detach() for name, weight in module.named_parameters()}

    def step(x: Any, kinds: Any) -> Any:
        def loss(weights: Any) -> Any:
            return functional.cross_entropy(torch.func.functional_call(module, weights, (x,)), kinds)

        slopes = torch.func.grad(loss)(weights)
        return [weight - 0.1 * slopes[name] for name, weight in weights.items()]

    return make_fx(step)(_data(5, 4), _numbers(3, 5))


_MIX = {"batch_first": True, "norm_first": True}

NETWORKS: Mapping[str, Network] = {
    **{
        f"{family} with a cache": Network(lambda family=family, more=more: Decoder(family, **more), _step)
        for family, more in (
            ("Llama", {}), ("Qwen3", {"head_dim": 4}), ("Gemma", {"head_dim": 4}), ("Phi3", {}), ("Granite", {}),
            ("Olmo2", {}), ("SmolLM3", {}), ("Starcoder2", {}),
        )
    },
    "relative attention": Network(RelativeAttention, lambda: (_data(2, 9, 16), torch.tensor([9, 6]))),
    "speech that is collapsed": Network(lambda: Function(_collapsed), lambda: (_data(2, 9, 5),)),
    "voice activity": Network(
        Activity, lambda: (_data(2, 32), _data(2, 2, 4), torch.tensor(16000)), (11, 14, 17), is_scripted=True
    ),
    "steps in a list": Network(
        Steps, lambda: (_data(6, 2, 4), torch.tensor(6)), (11, 14, 17), is_scripted=True
    ),
    "centres of boxes": Network(
        lambda: Function(_centres, heat=nn.Conv2d(3, 4, 3, 2, 1), extent=nn.Conv2d(3, 2, 3, 2, 1)),
        lambda: (_data(1, 3, 16, 20),),
    ),
    "deformable sampling": Network(
        lambda: Function(_sampled),
        lambda: (_data(1, 30, 2, 4), torch.rand(1, 5, 2, 2, 3, 2), torch.rand(1, 5, 2, 2, 3)),
        (17, 18, 23),
    ),
    "matched points": Network(lambda: Function(_matched), lambda: (_data(1, 4, 6), _data(1, 4, 6))),
    "coloured segmentation": Network(lambda: Function(_coloured), lambda: (_data(1, 3, 6, 7),)),
    "pillars": Network(
        lambda: Function(_pillars, embed=nn.Linear(4, 8)),
        lambda: (_data(4, 3, 4), torch.tensor([1, 3, 2, 3]), torch.tensor([[0, 1], [2, 3], [4, 5], [1, 1]])),
    ),
    "radiance field": Network(
        lambda: Function(_rendered, field=nn.Sequential(nn.Linear(15, 16), nn.Softplus(), nn.Linear(16, 4))),
        lambda: (_data(4, 3), _data(4, 3)),
    ),
    "graph attention": Network(
        lambda: Function(_attended, project=nn.Linear(6, 4), weight=nn.Parameter(_data(4))),
        lambda: (_data(7, 6), _numbers(7, 2, 15)),
        (17, 18, 23),
    ),
    "transformer over a table": Network(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, **_MIX), 2, enable_nested_tensor=False),
        lambda: (_data(4, 6, 8),),
        (18, 23),
    ),
    "crossed features": Network(
        lambda: Function(
            _crossed,
            embed=nn.Embedding(20, 6),
            cross=nn.Linear(12, 12),
            deep=nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.PReLU(), nn.Linear(8, 1)),
        ),
        lambda: (_numbers(20, 4, 5), _data(4, 6)),
    ),
    "policy": Network(
        lambda: Function(_acted, memory=nn.GRU(6, 8, batch_first=True), choose=nn.Linear(8, 5), move=nn.Linear(8, 2)),
        lambda: (_data(2, 3, 6), _data(1, 2, 8), _numbers(2, 2, 3, 5).bool()),
    ),
    "step of training": Network(_trained, lambda: (_data(5, 4), _numbers(3, 5))),
}  # fmt: skip
