"""Features of a whole model that a runtime does not take, and their removal before nodes are rewritten.

Local functions are copied in place of their calls, sparse initializers become dense, narrow values are stored as raw
data, and unused imports are removed. Names of inputs and outputs stay, so nothing can be done about an output that is
itself an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from onnx import ModelProto, TensorProto, numpy_helper

from reducelower.errors import Refusal
from reducelower.files.external import all_tensors
from reducelower.legalization.functions import functions_of, inline
from reducelower.legalization.whole import Changed
from reducelower.legalization.whole.set_sizes import with_sizes
from reducelower.model.constants import dense
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes, graphs
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings
from reducelower.runtimes.runtime import Runtime
from reducelower.text import counted

__all__ = ["fitted", "inlined"]

_ONNX = DEFAULT_DOMAINS | {"ai.onnx.ml"}

_MOST_ELEMENTS = 1 << 28
"""Elements of a sparse initializer that becomes dense, at most."""


class _Feature(NamedTuple):
    """How to find a feature, and how to remove it.

    Attributes:
        find: the names of what has the feature.
        one, done: what each is called, and what was done to it.
        mend: changes a model so that it no longer has the feature, as far as possible.
        hint: what a user can do where it stays.
    """

    find: Callable[[ModelProto], list[str]]
    one: str
    done: str = ""
    mend: Callable[[ModelProto], object] = lambda model: None
    hint: str = ""


def fitted(document: Document, runtime: Runtime | None, settings: Settings) -> Changed:
    """The model with the sizes of `settings.set_sizes`, and without the features that a runtime does not take.

    The given one is not changed.
    """
    sized = with_sizes(document, settings.set_sizes, settings) if settings.set_sizes else Changed(document)
    if sized.refusals or runtime is None:
        return sized
    opset = opset_of(sized.document.message)
    facts = [fact for fact in runtime.facts if fact.opsets is None or opset in fact.opsets]
    unwanted = [(name, f"on {runtime}", fact.sentence) for fact in facts for name in sorted(fact.model)]
    without = _without(sized.document, unwanted)
    return replace(without, done=(*sized.done, *without.done))


def inlined(document: Document) -> Changed:
    """The model with every call of a local function replaced by the function's nodes; the given one is not changed."""
    return _without(document, [("functions", "", "")])


def _without(document: Document, unwanted: Iterable[tuple[str, str, str]]) -> Changed:
    """The model without the given features: name, where it is not taken, and the sentence that says so."""
    done: list[str] = []
    refusals: list[Refusal] = []
    for name, where, says in unwanted:
        feature = _FEATURES[name] if name in _FEATURES else _operator(name)
        if not (before := feature.find(document.message)):
            continue
        made = document.copy()
        feature.mend(made)
        if left := feature.find(made):
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            reason = f"{where}, it is refused: {says.rstrip('.')}" if says else "it cannot be replaced"
            refusals.append(
                Refusal("graph", "", "", f"{reason}: {feature.one} {left[0]!r}{more}".strip(), feature.hint)
            )
            continue
        document = Document(made)
        sentence = f"{counted(len(before), feature.one)} {'was' if len(before) == 1 else 'were'} {feature.done}"
        done.append(f"{sentence} ({where}: {says.rstrip('.')})." if says else f"{sentence}.")
    return Changed(document, tuple(done), tuple(refusals))


def _sparse(model: ModelProto) -> list[str]:
    return [tensor.values.name for _, graph in graphs(model) for tensor in graph.sparse_initializer]


def _make_dense(model: ModelProto) -> None:
    for _, graph in graphs(model):
        for tensor in list(graph.sparse_initializer):
            if prod(tensor.dims) <= _MOST_ELEMENTS:
                graph.initializer.append(numpy_helper.from_array(dense(tensor), tensor.values.name))
                graph.sparse_initializer.remove(tensor)


def _passed_through(model: ModelProto) -> list[str]:
    fed = {value.name for value in model.graph.input}
    return [value.name for value in model.graph.output if value.name in fed]


def _open_sizes(model: ModelProto) -> list[str]:
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [
        value.name
        for value in model.graph.input
        if value.name not in defaults and any(not dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)
    ]


def _defaults(model: ModelProto) -> list[str]:
    fed = {value.name for value in model.graph.input}
    return [tensor.name for tensor in model.graph.initializer if tensor.name in fed]


def _spare_imports(model: ModelProto) -> list[str]:
    own = {function.domain for function in model.functions}
    return [entry.domain for entry in model.opset_import if entry.domain not in _ONNX | own]


def _drop_spare_imports(model: ModelProto) -> None:
    used = _ONNX | {node.domain for node in all_nodes(model)}
    for entry in [entry for entry in model.opset_import if entry.domain not in used]:
        model.opset_import.remove(entry)


def _in_int32_data(model: ModelProto) -> list[str]:
    return [tensor.name for tensor in all_tensors(model) if _is_widened(tensor)]


def _is_widened(tensor: TensorProto) -> bool:
    return tensor.data_type != TensorProto.INT32 and len(tensor.int32_data) > 0


def _store_as_raw_data(model: ModelProto) -> None:
    for tensor in filter(_is_widened, list(all_tensors(model))):
        raw = numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
        tensor.ClearField("int32_data")
        tensor.raw_data = raw


def _operator(name: str) -> _Feature:
    """The feature of having an operator of another domain; `name` is domain, dot, operator."""
    domain, _, op_type = name.rpartition(".")

    def find(model: ModelProto) -> list[str]:
        own = functions_of(model)
        nodes = [node for node in all_nodes(model) if (node.domain, node.op_type) == (domain, op_type)]
        return [node.name or op_type for node in nodes if (domain, op_type, node.overload) not in own]

    hint = (
        "take the model before operators of this domain were put in, by an optimizer or a quantizer, or export it again"
    )
    return _Feature(find, f"{op_type} of {domain}", hint=hint)


_FEATURES: Mapping[str, _Feature] = {
    "functions": _Feature(
        lambda model: [function.name for function in model.functions],
        "local function",
        "copied in place of calls",
        inline,
        "export it again with the same opset versions for functions and model, and calls that fit",
    ),
    "sparse initializers": _Feature(
        _sparse, "sparse initializer", "made dense", _make_dense, "store its values as a dense tensor"
    ),
    "outputs that are inputs": _Feature(
        _passed_through,
        "output",
        hint="export the model with another name for this output, which an Identity yields, or without it",
    ),
    "named sizes": _Feature(
        _open_sizes,
        "input",
        hint="set its sizes in the model: --set-size NAME=N, or set_sizes in the library",
    ),
    "defaults of inputs": _Feature(
        _defaults, "input with a default", hint="remove it from the inputs of the graph: it is then a constant"
    ),
    "imports of other domains": _Feature(
        _spare_imports,
        "import of another domain",
        "removed, since nothing uses it",
        _drop_spare_imports,
        "replace the operators of this domain",
    ),
    "narrow values in int32_data": _Feature(
        _in_int32_data, "tensor", "stored as raw data", _store_as_raw_data, "store its values as raw data"
    ),
}
