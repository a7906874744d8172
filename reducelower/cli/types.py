"""The types of what options are given: what counts as one, and how a shell completes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from reducelower.model.suggestions import did_you_mean, operator_names

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
    """The name of a file or folder; it is opened later, and the shell completes it.

    An empty one is what a variable of a script that is not set leaves, and would stand for the current folder.
    """

    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value):
            self.fail("the name is empty; write . for the current folder", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.name)]


class _Rules(_Name):
    """A rule book by its name, or a folder of rules."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # Most conversions need no rule, and would never tell that there is no such book.
        if param is not None and value == param.default:
            return str(value)
        from reducelower.rulebook import shipped_books

        known = sorted(shipped_books())
        if value not in known and not Path(value).is_dir():
            near = did_you_mean(value, known)
            self.fail(f"{value!r} is neither a rule book ({', '.join(known)}) nor a folder of rules{near}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from reducelower.rulebook import shipped_books

        return _starting(incomplete, shipped_books()) or super().shell_complete(ctx, param, incomplete)


class _Opset(ParamType):
    """An opset version that the installed onnx knows."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from reducelower.model.schemas import latest_opset

        latest = latest_opset()
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not an opset version; give a number from 1 to {latest}", param, ctx)
        if not 1 <= number <= latest:
            self.fail(f"there is no opset {number}; the onnx installed knows opsets 1 to {latest}", param, ctx)
        return number


class _Operator(ParamType):
    """An operator of the default domain."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from reducelower.model.schemas import versions

        if not versions(value):
            self.fail(f"ONNX has no operator {value!r}{did_you_mean(value, operator_names())}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _starting(incomplete, operator_names())


class _Runtime(ParamType):
    """A runtime target: the name of a shipped one, or a file."""

    name = "NAME|FILE.toml"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        from reducelower.runtimes import TargetError, load_runtime

        try:
            return load_runtime(value)
        except TargetError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from reducelower.runtimes import shipped_names

        return _starting(incomplete, shipped_names()) or [CompletionItem(incomplete, type="file")]


class _ElementType(ParamType):
    """An ONNX element type, in ONNX's or numpy's spelling."""

    name = "TYPE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from reducelower.model.schemas import element_type_name, parse_element_type

        try:
            return element_type_name(parse_element_type(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from reducelower.model.schemas import element_type_names

        return _starting(incomplete, element_type_names())


class _Tolerance(ParamType):
    """How far values of an element type may be apart: ``16ulp``, ``1e-4`` (relative), ``0.01abs``, or several."""

    name = "TOLERANCE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from reducelower.verification import Tolerance

        bounds: dict[str, Any] = {}
        for part in str(value).split(","):
            kind = next((kind for ending, kind in _BOUNDS.items() if part.endswith(ending)), "relative")
            number = part.removesuffix({"ulp": "ulp", "absolute": "abs"}.get(kind, ""))
            try:
                bound = int(number) if kind == "ulp" else float(number)
            except ValueError:
                bound = -1
            if not 0 <= bound < float("inf"):
                self.fail(
                    f"{value!r} is not a tolerance; write 16ulp, 1e-4 (relative), 0.01abs or 4ulp,1e-4", param, ctx
                )
            bounds[kind] = bound
        return Tolerance(**bounds)


_BOUNDS = {"ulp": "ulp", "abs": "absolute"}


class _IrVersion(ParamType):
    """``auto``, ``keep`` or a number."""

    name = "auto|keep|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        if value in ("auto", "keep"):
            return str(value)
        from onnx import IR_VERSION

        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is neither 'auto' nor 'keep' nor a number", param, ctx)
        if not 1 <= number <= IR_VERSION:
            self.fail(f"there is no IR version {number}; the onnx installed knows 1 to {IR_VERSION}", param, ctx)
        return number


class Pairs(ParamType):
    """``NAME=VALUE``, the value of a type of its own."""

    def __init__(self, value: ParamType | type, meta: str) -> None:
        """Say what the value is, and how help shows it."""
        self.value = click.types.convert_type(value)
        self.name = meta

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the last ``=``: names of values may hold one, what they are given may not."""
        if isinstance(value, tuple):
            return value
        name, equals, given = str(value).rpartition("=")
        if not equals or not name or not given:
            self.fail(f"{value!r} is not of the form {self.name}", param, ctx)
        return name, self.value.convert(given, param, ctx)


class _InputFile(Pairs):
    """``NAME=FILE``, or a ``.npz`` file that holds an array for each of several inputs."""

    def __init__(self) -> None:
        """Take files of all kinds that hold arrays."""
        super().__init__(str, "NAME=FILE.npy|FILE.npz")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the last ``=``; a file of several arrays stands for its own name."""
        if isinstance(value, str) and value.endswith(".npz") and "=" not in value:
            return value, value
        return super().convert(value, param, ctx)


INPUT_FILE = _InputFile()
OPSET = _Opset()
OPERATOR = _Operator()
RUNTIME = _Runtime()
ELEMENT_TYPE = _ElementType()
IR_VERSION = _IrVersion()
TOLERANCE = _Tolerance()
FILE = _Name("file")
FOLDER = _Name("dir")
RULES = _Rules("dir")
