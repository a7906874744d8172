"""BatchNormalization and InstanceNormalization across their versions.

What tells training from inference changed twice: the attribute is_test (up to 6), the number of outputs (7 to 13), the
attribute training_mode (since 14). Training is written out as plain operators on the way down, since the versions of 7
to 13 do not say which variance they take.

Source: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html (1, 6, 7, 9, 14, 15).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope


def _outputs(node: NodeProto) -> int:
    """How many outputs the node asks for."""
    return max((index + 1 for index, name in enumerate(node.output) if name), default=0)


def _in_training(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Normalize by the statistics of the batch, and move the running ones; for opset 13 or 14.

    Written as in the operator's page: population variance, running = running * momentum + current * (1 - momentum).
    All is computed in the type of the data, of scale and bias, or in float, as the page asks of the statistics of
    narrower data: in the widest of the three.
    """
    body = Writer(node, scope)
    data, scale, bias, mean, variance = node.input[:5]
    own_type, parameter_type = (scope.needed_element_type(name) for name in (data, scale))
    element_type = max((own_type, parameter_type, TensorProto.FLOAT), key=lambda found: _WIDTH.get(found, 0))
    data = body.cast(data, own_type, element_type, "wide")
    rank = scope.needed_rank(node.input[0])
    axes = [0, *range(2, rank)]
    current, deviation, spread = _statistics(body, data, axes)
    epsilon = body.constant(value_of(node, "epsilon", 1e-5), element_type, "epsilon")
    root = body.add("Sqrt", body.add("Add", spread, epsilon, tail="stabilized"), tail="root")
    momentum = float(value_of(node, "momentum", 0.9))
    for output, running, batch in ((1, mean, current), (2, variance, spread)):
        if body.wants(output):
            flat = body.add("Squeeze", batch, body.integers(axes, "batch_axes"))
            running_type = scope.needed_element_type(running)
            if running_type != element_type:
                flat = body.add("Cast", flat, to=running_type)
            kept = body.add("Mul", running, body.constant(momentum, running_type, "momentum"), tail="kept")
            added = body.add("Mul", flat, body.constant(1.0 - momentum, running_type, "rest"), tail="added")
            body.yields("Add", kept, added, output=output)
    columns = []
    for name, tail in ((scale, "scale"), (bias, "bias")):
        name = body.cast(name, parameter_type, element_type, f"wide_{tail}")
        if rank > 2:
            axes_after = body.integers(list(range(1, rank - 1)), "spatial_axes")
            name = body.add("Unsqueeze", name, axes_after, tail=tail)
        columns.append(name)
    normalized = body.add("Div", deviation, root, tail="normalized")
    scaled = body.add("Mul", normalized, columns[0], tail="scaled")
    return body.yields_cast(body.add("Add", scaled, columns[1], tail="shifted"), element_type, own_type)


def _statistics(body: Writer, data: str, axes: list[int]) -> tuple[str, str, str]:
    """Append the mean of the batch, the deviations from it and their population variance; returns their names."""
    mean = body.add("ReduceMean", data, tail="batch_mean", axes=axes, keepdims=1)
    deviation = body.add("Sub", data, mean, tail="deviation")
    square = body.add("Mul", deviation, deviation, tail="square")
    return mean, deviation, body.add("ReduceMean", square, tail="batch_variance", axes=axes, keepdims=1)


def _of_one_type(node: NodeProto, scope: Scope, parameters: tuple[int, ...]) -> Outcome:
    """Give data and parameters the same element type: the widest among them."""
    types = {index: scope.needed_element_type(node.input[index]) for index in (0, *parameters)}
    if len(set(types.values())) == 1:
        return None
    if _outputs(node) > 1:
        raise RefusedError("its inputs are of different element types, which opset 14 allows for one output only here")
    widest = max(types.values(), key=lambda found: _WIDTH.get(found, 0))
    body = Writer(node, scope)
    inputs = [body.cast(name, types.get(index, types[0]), widest, "cast") for index, name in enumerate(node.input)]
    wide = body.add("BatchNormalization", *inputs, tail="wide", copied=node.attribute)
    return body.yields_cast(wide, widest, types[0])


_WIDTH: dict[int, int] = {TensorProto.FLOAT: 1, TensorProto.DOUBLE: 2}


@lowers("BatchNormalization", 15)
def _tie_scale(node: NodeProto, scope: Scope) -> Outcome:
    """Since 15 scale and bias may be of another element type than the data."""
    if not _is_mixed(node, scope, (1, 2)):
        return None
    is_training = value_of(node, "training_mode", 0)
    return _in_training(node, scope) if is_training else _of_one_type(node, scope, (1, 2, 3, 4))


def _is_mixed(node: NodeProto, scope: Scope, parameters: tuple[int, ...]) -> bool:
    """Whether parameters are known to be of another element type than the data."""
    data = scope.element_type(node.input[0])
    return any(scope.element_type(node.input[index]) not in (data, None) for index in parameters)


@lowers("BatchNormalization", 14)
def _lower_training_mode(node: NodeProto, scope: Scope) -> Outcome:
    """Training is written out; the attribute goes, and inference has one output and one element type."""
    if value_of(node, "training_mode", 0):
        return _in_training(node, scope)
    if _outputs(node) > 1:
        raise RefusedError("it asks for running statistics without training_mode=1, which is not valid")
    drop_attribute(node, "training_mode")
    del node.output[1:]
    return _of_one_type(node, scope, (1, 2, 3, 4)) if _is_mixed(node, scope, (1, 2, 3, 4)) else None


@raises("BatchNormalization", 14)
def _raise_training_mode(node: NodeProto, scope: Scope) -> Outcome:
    """Several outputs meant training."""
    if _outputs(node) <= 1:
        return None
    for index in (3, 4):
        if len(node.output) > index and node.output[index]:
            if scope.is_read(node.output[index]):
                raise RefusedError("its output saved_mean or saved_var is used, which opset 14 dropped")
            node.output[index] = ""
    set_attribute(node, "training_mode", 1)
    return None


@lowers("BatchNormalization", 9)
def _lower_vector(node: NodeProto, scope: Scope) -> Outcome:
    """Since 9 data may be a vector."""
    if scope.rank(node.input[0]) == 1:
        raise RefusedError("its data is a vector, which BatchNormalization takes since opset 9")
    return None


@raises("BatchNormalization", 9)
def _raise_spatial(node: NodeProto, scope: Scope) -> Outcome:
    """spatial=0 had one parameter per element of an instance: the instances are flattened to vectors and back."""
    if int(value_of(node, "spatial", 1)) != 0:
        drop_attribute(node, "spatial")
        return None
    if _outputs(node) > 1:
        raise RefusedError("it trains with spatial=0, which opset 9 dropped")
    body = Writer(node, scope)
    flat = body.add("Flatten", node.input[0], tail="flat", axis=1)
    vector = body.integers([-1], "vector")
    parameters = [body.add("Reshape", name, vector) for name in node.input[1:5]]
    normal = body.add(
        "BatchNormalization", flat, *parameters, tail="normalized", epsilon=float(value_of(node, "epsilon", 1e-5))
    )
    shape, known = body.add("Shape", node.input[0]), scope.shape(node.input[0])
    if known is not None and all(known):
        return body.yields("Reshape", normal, shape)
    return body.yields_reshaped(normal, shape, scope.needed_element_type(node.input[0]))


@lowers("BatchNormalization", 7)
def _lower_is_test(node: NodeProto, scope: Scope) -> Outcome:
    """One output means inference, which is_test said before 7."""
    set_attribute(node, "is_test", int(_outputs(node) <= 1))
    return None


@raises("BatchNormalization", 7)
def _raise_is_test(node: NodeProto, scope: Scope) -> Outcome:
    """is_test=0, the default, with one output normalizes by the batch all the same."""
    is_test = int(value_of(node, "is_test", 0))
    drop_attribute(node, "is_test")
    if is_test:
        if _outputs(node) > 1:
            raise RefusedError("it asks for statistics with is_test=1, which is not valid")
        return None
    if _outputs(node) > 1:
        return None
    if int(value_of(node, "spatial", 1)) == 0:
        raise RefusedError("it trains with spatial=0 (is_test=0), which opset 7 cannot express")
    return _legacy_training(node, scope)


def _legacy_training(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Normalize by the statistics of the batch alone; for opset 7."""
    body = Writer(node, scope)
    data = node.input[0]
    rank = scope.needed_rank(data)
    axes = [0, *range(2, rank)]
    mean, _, variance = _statistics(body, data, axes)
    flat = [body.add("Squeeze", name, axes=axes) for name in (mean, variance)]
    epsilon = float(value_of(node, "epsilon", 1e-5))
    return body.yields("BatchNormalization", data, *node.input[1:3], *flat, epsilon=epsilon)


@lowers("BatchNormalization", 6)
def _lower_consumed(node: NodeProto, scope: Scope) -> Outcome:
    """The first version requires an attribute without effect and takes images only."""
    _check_image(node, scope)
    set_attribute(node, "consumed_inputs", [0] * len(node.input))
    return None


@lowers("InstanceNormalization", 6)
def _lower_instance(node: NodeProto, scope: Scope) -> Outcome:
    _check_image(node, scope)
    return None


def _check_image(node: NodeProto, scope: Scope) -> None:
    rank = scope.needed_rank(node.input[0])
    if rank != 4:
        raise RefusedError(f"its data has rank {rank}, and {node.op_type} takes rank 4 before opset 6")
