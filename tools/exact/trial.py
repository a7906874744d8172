"""Test rules: expand each operator with them, run the result, and measure the error.

It runs in onnxruntime, or in onnx's reference evaluator if onnxruntime has no kernel. `reductions` and `calls` provide
inputs and compare results with exact ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower.model.schemas import element_type_name
from reducelower.rulebook import RuleBook
from reducelower.rulebook.book import Rule
from tools.exact.calls import calls, errors_of_call
from tools.exact.normalizations import NORMALIZATIONS
from tools.exact.reductions import errors_of_specimen, limit_of, specimens
from tools.sessions import unoptimized

__all__ = ["Trial", "try_operator", "try_rule"]

_Array = np.ndarray[Any, Any]


@dataclass
class Trial:
    """One rule on one element type.

    Attributes:
        runtime: ``onnxruntime`` or ``onnx.reference``.
        results: number of compared output elements.
        largest_error: largest error, in ULP of the larger of result and largest input; in units for integers.
        wrong: a sentence for each wrong result.
    """

    rule: str
    element_type: str
    runtime: str
    results: int = 0
    largest_error: float = 0.0
    wrong: list[str] = field(default_factory=list)


def try_operator(book: RuleBook, op_type: str) -> Iterator[Trial]:
    """Try the rules for an operator, on all their element types.

    Raises:
        RuleError: a rule is invalid.
    """
    for rule in book.rules(op_type):
        for element_type in rule.types:
            if book.find(op_type, element_type, rule.claim.without) is rule:
                yield try_rule(book, rule, element_type)


def try_rule(book: RuleBook, rule: Rule, element_type: int, runtime: str = "onnxruntime") -> Trial:
    """Test one rule of a book on one element type, in a runtime or, if that has no kernel, in the next one.

    For float16, onnxruntime computes many operators in float32.
    """
    trial = Trial(rule.name, element_type_name(element_type), runtime)
    limit = limit_of(rule.function.name, element_type)
    expanded: dict[bytes, ModelProto] = {}
    without = [element_type_name(each) for each in rule.claim.without]
    for attempt in (_normalizations if rule.function.name in NORMALIZATIONS else _reductions)(rule, element_type):
        model, feeds = _model(rule, element_type, attempt)
        form = model.SerializeToString()
        if form not in expanded:
            expanded[form] = reducelower.expand(model, ops=[rule.function.name], rules=book, without_types=without)
        for error, sentence in attempt.errors(_output(expanded[form], feeds, trial)):
            trial.results += 1
            trial.largest_error = max(trial.largest_error, error)
            if not error <= limit:
                trial.wrong.append(f"{sentence} ({error:.3g} ULP)")
    return trial


@dataclass(frozen=True)
class _Try:
    """A call of an operator, and the errors of a result with a sentence about each."""

    inputs: Sequence[_Array]
    attributes: Mapping[str, Any]
    axes: Sequence[int] | None
    errors: Callable[[_Array], Iterable[tuple[float, str]]]


def _reductions(rule: Rule, element_type: int) -> Iterator[_Try]:
    op_type = rule.function.name
    for specimen in specimens(op_type, element_type):
        attributes = {"keepdims": int(specimen.keepdims), "noop_with_empty_axes": int(specimen.noop)}
        errors = partial(errors_of_specimen, op_type, element_type, specimen)
        yield _Try([specimen.data], attributes, specimen.axes, errors)


def _normalizations(rule: Rule, element_type: int) -> Iterator[_Try]:
    op_type = rule.function.name
    for call in calls(op_type, element_type):
        yield _Try(call.inputs, call.attributes, None, partial(errors_of_call, op_type, element_type, call))


def _model(rule: Rule, element_type: int, attempt: _Try) -> tuple[ModelProto, dict[str, _Array]]:
    """A model of the operator, on inputs of open shapes; axes are an input, or sometimes an initializer."""
    feeds = {f"x{at}": value for at, value in enumerate(attempt.inputs)}
    inputs = [
        helper.make_tensor_value_info(name, element_type, [f"{name}_{axis}" for axis in range(value.ndim)])
        for name, value in feeds.items()
    ]
    names, constants = list(feeds), []
    if attempt.axes is not None:
        names.append("axes")
        axes = numpy_helper.from_array(np.array(attempt.axes, np.int64), "axes")
        if attempt.attributes["noop_with_empty_axes"] and not attempt.attributes["keepdims"]:
            constants.append(axes)
        else:
            inputs.append(helper.make_tensor_value_info("axes", axes.data_type, ["count"]))
            feeds["axes"] = numpy_helper.to_array(axes)
    node = helper.make_node(rule.function.name, names, ["y"], **attempt.attributes)
    outputs = [helper.make_tensor_value_info("y", element_type, None)]
    graph = helper.make_graph([node], "rule", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", rule.opset)], ir_version=10), feeds


def _output(model: ModelProto, feeds: Mapping[str, _Array], trial: Trial) -> _Array:
    """The result in the trial's runtime; once onnxruntime cannot run a model, in the reference evaluator."""
    if trial.runtime == "onnxruntime":
        try:
            return np.asarray(unoptimized(model).run(None, dict(feeds))[0])
        except Exception:  # it raises several kinds of its own
            trial.runtime = "onnx.reference"
    with np.errstate(all="ignore"):
        return np.asarray(ReferenceEvaluator(model).run(None, dict(feeds))[0])
