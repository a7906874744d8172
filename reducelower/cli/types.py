"""The types of option values: what a text means, and what is said about a wrong one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from reducelower.text import did_you_mean

__all__ = [
    "ELEMENT_TYPE",
    "FILE",
    "INPUT_FILE",
    "IR_VERSION",
    "OPERATOR",
    "OPSET",
    "POSITIVE",
    "RULES",
    "RUNNER",
    "RUNTIME",
    "TOLERANCES",
    "Pairs",
    "Parsed",
]

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only from click 8.4 on


class Parsed(ParamType):
    """A value parsed by a function; the text of its ValueError is the error message."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The unchanged name: click would write it in capitals, but auto is literal, and files end in .toml."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a text; click may pass in a value that is already parsed."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _File(Parsed):
    """A value that the shell completes as the name of a file."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class Pairs(Parsed):
    """``NAME=VALUE``, split at the last ``=``, since names may contain one."""

    def __init__(self, name: str, value: Callable[[str], Any], key: Callable[[str], Any] = str) -> None:
        super().__init__(name, self._pair)
        self._value, self._key = value, key

    def _pair(self, text: str) -> tuple[Any, Any]:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise ValueError(f"{text!r} is not of the form {self.name}")
        return self._key(name), self._value(value)


class _InputFile(Pairs):
    """``NAME=FILE``, or a ``.npz`` file with arrays by name, which has its own path as its name."""

    def _pair(self, text: str) -> tuple[str, str]:
        return (text, text) if text.endswith(".npz") and "=" not in text else super()._pair(text)


def _file(text: str) -> str:
    """The name of a file or folder; an empty one, as from an unset variable, would mean the current folder."""
    if not text:
        raise ValueError("the name is empty; write . for the current folder")
    if text == "-" or "://" in text:
        raise ValueError(f"{text} is no file; models are read from files and written to files")
    return text


def _rules(text: str) -> str:
    """A rule book by its name, or a folder of rules, which is checked now: a model may need none of them."""
    from reducelower.rulebook import load_book, shipped_books

    if text not in shipped_books():
        load_book(_file(text)).check()
    return text


def _runtime(text: str) -> Any:
    """A target runtime, by its name or file."""
    from reducelower.runtimes import load_runtime

    return load_runtime(text)


def _runner(text: str) -> str:
    """A runtime that can run models here."""
    if text in ("onnxruntime", "reference"):
        return text
    from reducelower.verification.running.foreign import ADAPTERS, is_foreign, why_unusable

    if not is_foreign(text):
        known = sorted({"onnxruntime", "reference", *ADAPTERS})
        hint = did_you_mean(text, known) or f"; there are {', '.join(known)}"
        raise ValueError(f"no runtime is called {text!r}{hint}")
    if reason := why_unusable(text):
        raise ValueError(f"{reason}; install it, or say {text.partition(':')[0]}:PYTHON")
    return text


def _integer(text: str, message: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} {message}") from None


def _opset(text: str) -> int:
    """An opset version that the installed onnx knows: a number or ``latest``."""
    from reducelower.model.schemas import latest_opset

    latest = latest_opset()
    if text == "latest":
        return latest
    number = _integer(text, f"is not an opset version; give a number from 1 to {latest}, or latest")
    if not 1 <= number <= latest:
        raise ValueError(f"there is no opset {number}; the onnx installed knows opsets 1 to {latest}")
    return number


def _operator(text: str) -> str:
    """An operator of the default domain."""
    from reducelower.model.schemas import all_operators, versions

    if not versions(text):
        raise ValueError(f"ONNX has no operator {text!r}{did_you_mean(text, all_operators())}")
    return text


def _element_type(text: str) -> str:
    """An ONNX element type, in ONNX's or numpy's spelling."""
    from reducelower.model.schemas import element_type_name, parse_element_type

    return element_type_name(parse_element_type(text))


def _tolerance(text: str) -> Any:
    """A tolerance: ``16ulp``, ``1e-4`` (relative), ``0.01abs``, or several."""
    from reducelower.verification import Tolerance

    bounds: dict[str, Any] = {}
    for part in text.split(","):
        number, kind = _BOUND.fullmatch(part).groups()  # type: ignore[union-attr]  # it matches any text
        try:
            bound = int(number) if kind == "ulp" else float(number)
        except ValueError:
            bound = -1
        if not 0 <= bound < float("inf"):
            raise ValueError(f"{text!r} is not a tolerance; write 16ulp, 1e-4 (relative), 0.01abs or 4ulp,1e-4")
        bounds[{"ulp": "ulp", "abs": "absolute"}.get(kind, "relative")] = bound
    return Tolerance(**bounds)


_BOUND = re.compile("(.*?)(ulp|abs)?", re.DOTALL)


def _ir_version(text: str) -> str | int:
    """``auto``, ``keep`` or a number."""
    if text in ("auto", "keep"):
        return text
    from reducelower.arguments import check_options

    number = _integer(text, "is neither 'auto' nor 'keep' nor a number")
    check_options({"ir_version": number})
    return number


def _positive(text: str) -> float:
    """A number above 0; click's own range takes NaN."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise ValueError(f"{text!r} is not a number above 0")
    return number


FILE = _File("FILE", _file)
RULES = _File("spec|stable|core|DIR", _rules)
RUNTIME = _File("NAME|FILE.toml", _runtime)
RUNNER = Parsed("NAME[:PYTHON]", _runner)
OPSET = Parsed("N|latest", _opset)
OPERATOR = Parsed("NAME", _operator)
ELEMENT_TYPE = Parsed("TYPE", _element_type)
IR_VERSION = Parsed("auto|keep|N", _ir_version)
POSITIVE = Parsed("N", _positive)
INPUT_FILE = _InputFile("NAME=FILE.npy|FILE.npz", str)
TOLERANCES = Pairs("TYPE=TOLERANCE", _tolerance, _element_type)
