"""Nodes: conversion and expansion of long chains, beside the official converter, onnxscript's and protobuf itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from measuring import Line, at_least, at_most, duration, per_turn, take_turns
from models import chain
from onnx import ModelProto

import reducelower

__all__ = ["conversion", "expansion", "linearity"]


def _through(convert: Callable[[ModelProto], ModelProto], data: bytes) -> bytes:
    return convert(ModelProto.FromString(data)).SerializeToString()


def _official(target: int) -> Callable[[ModelProto], ModelProto]:
    from onnx import version_converter

    return partial(version_converter.convert_version, target_version=target)


def _ours(target: int) -> Callable[[bytes], bytes]:
    return partial(reducelower.convert_bytes, target_version=target)


def _onnxscript(target: int) -> Callable[[ModelProto], ModelProto]:
    from onnxscript import ir, version_converter

    def convert(model: ModelProto) -> ModelProto:
        converted = ir.from_proto(model)
        version_converter.convert_version(converted, target)
        return ir.to_proto(converted)

    return convert


def conversion(*, quick: bool) -> Iterator[Line]:
    """Bytes in, bytes out: a chain of 50,000 nodes both ways."""
    length, rounds = (200, 1) if quick else (50_000, 5)
    for source, target in ((13, 18), (18, 13)):
        data = chain(length, source)
        what = f"convert {source} -> {target}, {length:,} nodes"
        times = take_turns(
            {
                "ours": partial(_ours(target), data),
                "message": partial(_through, partial(reducelower.convert_version, target_version=target), data),
                "floor": partial(_through, lambda model: model, data),
                "official": partial(_through, _official(target), data),
            },
            rounds,
        )
        yield at_least(what, times["ours"], times["official"], "onnx.version_converter", 35)
        yield at_most(what, times["ours"], times["floor"], "protobuf parse + serialize", 8)
        yield at_most(f"{what}, convert_version", times["message"], times["floor"], "protobuf parse + serialize", 8)
        everyday = chain(length, source, everyday=True)
        times = take_turns(
            {
                "ours": partial(_ours(target), everyday),
                "floor": partial(_through, lambda model: model, everyday),
            },
            rounds,
        )
        yield at_most(f"{what}, Relu/Add/Mul", times["ours"], times["floor"], "protobuf parse + serialize", 8)
    data = chain(length, 18)
    times = take_turns(
        {"ours": partial(_ours(20), data), "peer": partial(_through, _onnxscript(20), data)}, min(rounds, 3)
    )
    yield at_least(f"convert 18 -> 20, {length:,} nodes", times["ours"], times["peer"], "onnxscript", 80)


def linearity(*, quick: bool) -> Iterator[Line]:
    """Time per node from 10,000 to 1,000,000 nodes."""
    lengths = (100, 200) if quick else (10_000, 100_000, 1_000_000)
    for source, target in ((13, 18), (18, 13)):
        per_node = []
        for length in lengths:
            data = chain(length, source)
            per_node.append(per_turn(partial(_ours(target), data), 1 if quick else 7) / length)
        ratio = max(per_node) / min(per_node)
        yield Line(
            f"time per node, {source} -> {target}, {lengths[0]:,} to {lengths[-1]:,} nodes",
            " / ".join(map(duration, per_node)),
            "each other",
            ratio,
            "<= 1.3x",
            ratio <= 1.3,
        )


def expansion(*, quick: bool) -> Iterator[Line]:
    """Composite reductions of the chain into their bodies, beside the inliner of onnx and our own conversion."""
    from onnx import inliner

    length, rounds = (200, 1) if quick else (50_000, 9)
    data = chain(length, 18)

    def inline(model: ModelProto) -> ModelProto:
        composite = [("", "ReduceL2"), ("", "ReduceLogSumExp")]
        return inliner.inline_selected_functions(model, composite, inline_schema_functions=True)

    times = take_turns(
        {
            **{rules: partial(reducelower.expand_bytes, data, rules=rules) for rules in ("spec", "stable", "core")},
            "convert": partial(_ours(13), data),
            "inliner": partial(_through, inline, data),
        },
        rounds,
    )
    what = f"expand, {length:,} nodes"
    yield at_least(f"{what}, spec", times["spec"], times["inliner"], "onnx.inliner", 5)
    for rules in ("spec", "stable", "core"):
        yield at_most(f"{what}, {rules}", times[rules], times["convert"], "convert 18 -> 13", 3)
