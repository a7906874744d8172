"""Conversion and expansion of long chains, compared with onnx's and onnxscript's converters and with protobuf."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from measuring import Line, at_least, at_most, duration, per_turn, take_turns
from models import chain, run_time_axes, spelled_out, transformer
from onnx import ModelProto

import reducelower
from reducelower.legalization.memo import forget

__all__ = ["conversion", "expansion", "exporters", "linearity", "raising", "refusals"]


def _through(convert: Callable[[ModelProto], ModelProto], data: bytes) -> bytes:
    return convert(ModelProto.FromString(data)).SerializeToString()


def _official(target: int) -> Callable[[ModelProto], ModelProto]:
    from onnx import version_converter

    return partial(version_converter.convert_version, target_version=target)


def _ours(target: int) -> Callable[[bytes], bytes]:
    return partial(reducelower.convert_version, target_version=target)


def _onnxscript(target: int) -> Callable[[ModelProto], ModelProto]:
    from onnxscript import ir, version_converter

    def convert(model: ModelProto) -> ModelProto:
        converted = ir.from_proto(model)
        version_converter.convert_version(converted, target)
        return ir.to_proto(converted)

    return convert


def conversion(*, quick: bool) -> Iterator[Line]:
    """A chain of 50,000 nodes from bytes to bytes, both ways, with axes written in every way."""
    length, rounds = (200, 1) if quick else (50_000, 5)
    floor = partial(_through, lambda model: model)
    for source, target, spelling in ((18, 13, "own"), (18, 13, "constant"), (18, 13, "shared"), (13, 18, "own")):
        data = chain(length, source, axes=spelling)
        what = f"convert {source} -> {target}, {length:,} nodes"
        what += f", {_SPELLINGS[spelling]}" if source == 18 else ""
        contenders = {
            "ours": partial(_ours(target), data),
            "message": partial(_through, partial(reducelower.convert_version, target_version=target), data),
            "floor": partial(floor, data),
        }
        if spelling == "own":
            contenders["official"] = partial(_through, _official(target), data)
        times = take_turns(contenders, rounds)
        if spelling == "own":
            yield at_least(what, times["ours"], times["official"], "onnx.version_converter", 25)
        yield at_most(what, times["ours"], times["floor"], _FLOOR, 8)
        yield at_most(f"{what}, convert_version", times["message"], times["floor"], _FLOOR, None)
    for source, target in ((18, 13), (13, 18)):
        everyday = chain(length, source, everyday=True)
        times = take_turns({"ours": partial(_ours(target), everyday), "floor": partial(floor, everyday)}, rounds)
        what = f"convert {source} -> {target}, {length:,} nodes, Relu/Add/Mul/MatMul with types stated"
        yield at_most(what, times["ours"], times["floor"], _FLOOR, 8)
    data = chain(length, 18)
    times = take_turns(
        {"ours": partial(_ours(20), data), "peer": partial(_through, _onnxscript(20), data)}, min(rounds, 3)
    )
    yield at_least(f"convert 18 -> 20, {length:,} nodes", times["ours"], times["peer"], "onnxscript", 80)


_FLOOR = "protobuf parse + serialize"

_SPELLINGS = {"own": "own initializers", "constant": "Constant nodes", "shared": "one shared initializer"}


def exporters(*, quick: bool) -> Iterator[Line]:
    """Models as exporters write them: 40 small ones from torch and skl2onnx, and a transformer as torch writes one."""
    files = sorted(_MODELS.glob("*.onnx"))[: 4 if quick else None]
    ours, again, floors = [], [], []
    rounds = 1 if quick else 9
    for file in files:
        data = file.read_bytes()
        contenders = {"ours": partial(_ours(13), data), "floor": partial(_through, lambda model: model, data)}
        times = take_turns(contenders, rounds, before=forget)
        ours.append(times["ours"])
        floors.append(times["floor"])
        again.append(per_turn(contenders["ours"], rounds))
    yield at_most(f"convert {len(files)} exporter models -> 13, together", sum(ours), sum(floors), _FLOOR, None)
    what = "convert them where models like them came before"
    yield at_most(what, sum(again), sum(floors), _FLOOR, None)
    slowest = max(range(len(files)), key=lambda index: ours[index] / floors[index])
    what = f"convert the slowest of them, {files[slowest].stem}"
    yield at_most(what, ours[slowest], floors[slowest], _FLOOR, None)
    data = transformer(2 if quick else 100)
    count = len(ModelProto.FromString(data).graph.node)
    for target in (18, 13):
        times = take_turns(
            {"ours": partial(_ours(target), data), "floor": partial(_through, lambda model: model, data)},
            1 if quick else 5,
            before=forget,
        )
        what = f"convert a transformer of {count:,} nodes, 20 -> {target}"
        yield at_most(what, times["ours"], times["floor"], _FLOOR, 40)


_MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"


def linearity(*, quick: bool) -> Iterator[Line]:
    """Time per node from 10,000 to 1,000,000 nodes, compared with protobuf, which is slower on larger models too."""
    lengths = (100, 200) if quick else (10_000, 100_000, 1_000_000)
    for source, target in ((13, 18), (18, 13)):
        per_node: dict[str, list[float]] = {"ours": [], "floor": []}
        for length in lengths:
            data = chain(length, source)
            contenders = {"ours": partial(_ours(target), data), "floor": partial(_through, lambda model: model, data)}
            for name, seconds in take_turns(contenders, 1 if quick else 7).items():
                per_node[name].append(seconds / length)
        what = f"time per node, {source} -> {target}, {lengths[0]:,} to {lengths[-1]:,} nodes"
        ratio, beside = (max(times) / min(times) for times in per_node.values())
        ours, floors = (" / ".join(f"{seconds * 1e6:.2f}" for seconds in times) for times in per_node.values())
        yield Line(what, f"{ours} us", f"{_FLOOR}: {floors} us, {beside:.2f}x", ratio, "<= 1.3x", ratio <= 1.3)


def expansion(*, quick: bool) -> Iterator[Line]:
    """Expansion of a chain's composite reductions, compared with onnx's inliner and our own conversion."""
    from onnx import inliner

    length, rounds = (200, 1) if quick else (50_000, 9)
    data = chain(length, 18)

    def inline(model: ModelProto) -> ModelProto:
        composite = [("", "ReduceL2"), ("", "ReduceLogSumExp")]
        return inliner.inline_selected_functions(model, composite, inline_schema_functions=True)

    times = take_turns(
        {
            **{rules: partial(reducelower.expand, data, rules=rules) for rules in ("spec", "stable", "core")},
            "convert": partial(_ours(13), data),
            "inliner": partial(_through, inline, data),
        },
        rounds,
    )
    what = f"expand, {length:,} nodes"
    yield at_least(f"{what}, spec", times["spec"], times["inliner"], "onnx.inliner", 5)
    yield at_least(f"{what}, stable", times["stable"], times["inliner"], "onnx.inliner", 3)
    for rules in ("spec", "stable", "core"):
        yield at_most(f"{what}, {rules}", times[rules], times["convert"], "convert 18 -> 13", 3)


def raising(*, quick: bool) -> Iterator[Line]:
    """Raising 500 copies of each pattern, and of patterns that only look like them, among everyday nodes."""
    counts, rounds = ((2, 4), 1) if quick else ((50, 500), 3)
    per_node = []
    for count in counts:
        model = spelled_out(count)
        length = len(model.graph.node)
        contenders: dict[str, Callable[[], object]] = {"raise": partial(reducelower.raise_reductions, model)}
        contenders |= {f"to {to}": partial(reducelower.convert_version, model, to) for to in (9, 18)}
        times = take_turns(contenders, rounds)
        per_node.append(times["raise"] / length)
    what = f"raise, {length:,} nodes, {count:,} of each pattern"
    yield at_most(what, times["raise"], times["to 9"], "convert 17 -> 9", 6)
    yield at_most(what, times["raise"], times["to 18"], "convert 17 -> 18", None)
    ratio = max(per_node) / min(per_node)
    times_per_node = " / ".join(map(duration, per_node))
    what = f"time per node, raise, {count // 10 * length // count:,} to {length:,} nodes"
    yield Line(what, times_per_node, "each other", ratio, "<= 1.3x", ratio <= 1.3)


def refusals(*, quick: bool) -> Iterator[Line]:
    """Refusing nodes that depend on unknown ranks, compared with converting them with known ranks."""
    length = 200 if quick else 20_000
    unknown, known = (run_time_axes(length, ranked=ranked) for ranked in (False, True))

    def refuse() -> None:
        with contextlib.suppress(reducelower.ConversionError):
            reducelower.convert_version(unknown, 13)

    times = take_turns({"ours": refuse, "convert": partial(_ours(13), known)}, 1 if quick else 3)
    what = f"refuse {length // 10:,} of {length:,} nodes, 18 -> 13"
    yield at_most(what, times["ours"], times["convert"], "converting them", 2)
