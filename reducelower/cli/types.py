"""The types of option values: how they are parsed, and how a shell completes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from reducelower.model.text import did_you_mean

__all__ = [
    "ELEMENT_TYPE",
    "FILE",
    "FOLDER",
    "INPUT_FILE",
    "IR_VERSION",
    "OPERATOR",
    "OPSET",
    "RULES",
    "RUNTIME",
    "TOLERANCE",
    "Integer",
    "Number",
    "Pairs",
    "ParamType",
]

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only from click 8.4 on


def _starting(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.lower().startswith(incomplete.lower())]


class _Name(ParamType):
    """The name of a file or folder, which is opened later and which the shell completes.

    An empty name, as from an unset variable of a script, would mean the current folder. Standard streams and URLs would
    become files of that name.
    """

    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value):
            self.fail("the name is empty; write . for the current folder", param, ctx)
        if value == "-" or "://" in str(value):
            self.fail(f"{value} is no file; models are read from files and written to files", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.name)]


class _Rules(_Name):
    """A rule book by its name, or a folder of rules."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # The default needs no check.
        if param is not None and value == param.default:
            return str(value)
        from reducelower.rulebook import RuleError, load_book, shipped_books
        from reducelower.rulebook.boundaries import boundaries_of
        from reducelower.rulebook.boundary_validation import check_boundaries

        # Check now whether a folder has valid rules: a model that needs none of them would not show it.
        if value not in shipped_books():
            try:
                book = load_book(value)
                book.check()
                own = boundaries_of(book.directory)
                if own is not None:
                    check_boundaries(own)
            except RuleError as error:
                self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from reducelower.rulebook import shipped_books

        return _starting(incomplete, shipped_books()) or super().shell_complete(ctx, param, incomplete)


class _Parsed(ParamType):
    """A value parsed by a function; the text of its ValueError is the error message."""

    def __init__(
        self, name: str, parse: Callable[[str], Any], known: Callable[[], Iterable[str]] = tuple, *, file: bool = False
    ) -> None:
        """Store the name in help, the parser, and what a shell offers: known names, or files."""
        self.name = name
        self._parse, self._known, self._file = parse, known, file

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The unchanged name: click would write it in capitals, but auto is literal, and files end in .toml."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # already parsed
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        files = [CompletionItem(incomplete, type="file")] if self._file else []
        return _starting(incomplete, self._known()) or files


def _from(module: str, name: str) -> Callable[..., Any]:
    """A function of one of our modules, which is imported on the first call."""
    return lambda *given: getattr(import_module(f"reducelower.{module}"), name)(*given)


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
    from onnx import IR_VERSION

    number = _integer(text, "is neither 'auto' nor 'keep' nor a number")
    if not 3 <= number <= IR_VERSION:
        raise ValueError(
            f"IR version {number} cannot be written; give one from 3, the oldest in which models state their opset "
            f"version, to {IR_VERSION}, the newest that the installed onnx knows"
        )
    return number


class Integer(click.IntRange):
    """An integer in a range."""

    name = "integer"


class Number(click.FloatRange):
    """A number in a range, but not NaN, which click accepts in every range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number and refuse NaN."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{number} is not a number", param, ctx)
        return number


class Pairs(ParamType):
    """``NAME=VALUE``, where the value has its own type."""

    def __init__(self, value: ParamType | type, meta: str) -> None:
        self.value = click.types.convert_type(value)
        self.name = meta

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the last ``=``, since names may contain one."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).rpartition("=")
        if not equals or not name or not text:
            self.fail(f"{value!r} is not of the form {self.name}", param, ctx)
        return name, self.value.convert(text, param, ctx)


class _InputFile(Pairs):
    """``NAME=FILE``, or a ``.npz`` file with an array for each of several inputs."""

    def __init__(self) -> None:
        super().__init__(str, "NAME=FILE.npy|FILE.npz")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the last ``=``; a file with several arrays has its own path as its name."""
        if isinstance(value, str) and value.endswith(".npz") and "=" not in value:
            return value, value
        return super().convert(value, param, ctx)


INPUT_FILE = _InputFile()
OPSET = _Parsed("N|latest", _opset, lambda: ["latest"])
OPERATOR = _Parsed("NAME", _operator, _from("model.schemas", "all_operators"))
RUNTIME = _Parsed("NAME|FILE.toml", _from("runtimes", "load_runtime"), _from("runtimes", "shipped_names"), file=True)
ELEMENT_TYPE = _Parsed("TYPE", _element_type, _from("model.schemas", "element_type_names"))
IR_VERSION = _Parsed("auto|keep|N", _ir_version)
TOLERANCE = _Parsed("TOLERANCE", _tolerance)
FILE = _Name("file")
FOLDER = _Name("dir")
RULES = _Rules("dir")
