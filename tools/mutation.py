"""Break valid models: in their bytes, and in their protobuf fields, which reaches more of the code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto

from tests.legalization.models import FORMS, OPERATORS, PLACES, Case

__all__ = ["mutated", "seeds"]

_DATA = Path(__file__).parents[1] / "tests" / "data" / "models"
_INTEGERS = (0, 1, -1, 2, 7, 13, 17, 18, 127, 128, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63))
_TEXTS = ("", "x", "y", "axes", "ReduceSum", "If", "Loop", "ai.onnx", "local", "\0", "\x1b[2J", "é" * 50, "a/b", "{}%s")


def seeds() -> list[bytes]:
    """Valid models: every place and form of axes for every Reduce operator, and exported models."""
    models = [path.read_bytes() for path in sorted(_DATA.glob("*.onnx"))]
    number = 0
    for place in PLACES:
        for form in FORMS:
            opset, op_type = (11, 13, 18, 20)[number % 4], OPERATORS[number % len(OPERATORS)]
            case = Case(op_type, opset, form, place=place)
            number += 1
            if case.is_possible():
                models.append(case.model().SerializeToString())
    return models


def mutated(models: Sequence[bytes], number: int) -> bytes:
    """The broken model of a number, always the same one."""
    rng = random.Random(number)
    data = rng.choice(models)
    if number % 2:
        return _break_message(data, rng)
    return _break_bytes(bytearray(data), rng, models)


# Bytes

_WAYS = ("flip", "flip", "flip", "set", "set", "insert", "remove", "repeat", "cross", "cut")


def _break_bytes(data: bytearray, rng: random.Random, models: Sequence[bytes]) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            _break_once(data, rng.choice(_WAYS), rng, models)
    return bytes(data)


def _break_once(data: bytearray, way: str, rng: random.Random, models: Sequence[bytes]) -> None:
    if way == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way == "set":
        data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    elif way == "insert":
        place = rng.randrange(len(data) + 1)
        data[place:place] = rng.randbytes(rng.choice((1, 2, 8)))
    elif way == "remove":
        place = rng.randrange(len(data))
        del data[place : place + rng.choice((1, 2, 8, 64))]
    elif way == "repeat":
        start = rng.randrange(len(data))
        piece = data[start : start + rng.choice((1, 4, 16, 256))]
        place = rng.randrange(len(data) + 1)
        data[place:place] = piece * rng.choice((1, 2, 10))
    elif way == "cross":
        other = rng.choice(models)
        start = rng.randrange(len(other))
        data[rng.randrange(len(data) + 1) :] = other[start:]
    else:
        del data[rng.randrange(len(data)) :]


# Fields


def _break_message(data: bytes, rng: random.Random) -> bytes:
    model = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _break_field(*rng.choice(_fields(model)), rng)
    try:
        return model.SerializeToString()
    except Exception:  # protobuf refuses to write some values, such as half a character
        return data


def _fields(model: ModelProto) -> list[tuple[Message, FieldDescriptor]]:
    fields: list[tuple[Message, FieldDescriptor]] = []
    present: list[tuple[Message, FieldDescriptor]] = []
    pending: list[Message] = [model]
    while pending:
        message = pending.pop()
        values = dict(message.ListFields())
        fields += [(message, field) for field in message.DESCRIPTOR.fields]
        present += [(message, field) for field in message.DESCRIPTOR.fields if field in values]
        for field, value in values.items():
            if field.message_type is not None:
                pending.extend([value] if isinstance(value, Message) else value)
    # Changing present fields finds more than adding absent ones.
    return present * 6 + fields


def _break_field(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    value = getattr(message, field.name)
    if not hasattr(value, "__len__") or isinstance(value, (str, bytes)):
        _break_single(message, field, value, rng)
    else:
        _break_repeated(field, value, rng)


def _break_single(message: Message, field: FieldDescriptor, value: Any, rng: random.Random) -> None:
    if rng.random() < 0.3:
        message.ClearField(field.name)
    elif field.message_type is not None:
        value.SetInParent()
    else:
        setattr(message, field.name, _odd(field, value, rng))


def _break_repeated(field: FieldDescriptor, value: Any, rng: random.Random) -> None:
    what = rng.randrange(5)
    if what == 0 or not value:
        if field.message_type is None:
            value.append(_odd(field, None, rng))
        else:
            value.add()
    elif what == 1:
        del value[rng.randrange(len(value))]
    elif what == 2:
        item = value[rng.randrange(len(value))]
        value.extend([item] * rng.choice((1, 1, 5)))
    elif what == 3:
        items = list(value)
        rng.shuffle(items)
        copies = [type(item).FromString(item.SerializeToString()) for item in items] if field.message_type else items
        del value[:]
        value.extend(copies)
    elif field.message_type is None:
        value[rng.randrange(len(value))] = _odd(field, value[0], rng)
    else:
        del value[:]


def _odd(field: FieldDescriptor, value: Any, rng: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(_TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\0", rng.randbytes(9), bytes(value or b"")[:-1], bytes(value or b"") * 2))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    small = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)
    choices = [number for number in _INTEGERS if not small or -(2**31) <= number < 2**31]
    if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_UINT32):
        choices = [number for number in choices if number >= 0]
    return rng.choice(choices)
