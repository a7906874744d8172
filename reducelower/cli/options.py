"""Options that commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from reducelower.arguments import LARGEST_RANK
from reducelower.cli.types import (
    ELEMENT_TYPE,
    FILE,
    FOLDER,
    INPUT_FILE,
    IR_VERSION,
    OPERATOR,
    RULES,
    RUNTIME,
    TOLERANCE,
    Integer,
    Number,
    Pairs,
    ParamType,
)
from reducelower.model.text import did_you_mean

if TYPE_CHECKING:
    from reducelower.options import Settings, Target

__all__ = [
    "EXCLUDE_OPTION",
    "FORMAT_OPTION",
    "FOR_OPTION",
    "IR_VERSION_OPTION",
    "JSON_OPTION",
    "MODELS",
    "MODEL_OPTIONS",
    "OUTPUT_OPTIONS",
    "QUIET_OPTION",
    "REPAIR_OPTION",
    "REPORT_OPTION",
    "VERIFICATION_OPTIONS",
    "WITHOUT_OPTION",
    "WORKERS_OPTIONS",
    "Option",
    "conversion_options",
    "option",
    "settings_of",
    "target_of",
    "with_options",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option: TypeAlias = Callable[[Any], Any]
"""What `click.option` and `click.argument` return."""


def option(flags: str, text: str, **how: Any) -> Option:
    """An option by its flags, and the name of its parameter if that is another, with spaces between them.

    Without anything else it takes no value. Help shows the default that a value has.
    """
    said = {"show_default": how.get("default", "") != "", **how} if how else {"is_flag": True}
    return click.option(*flags.split(), help=text, **said)


def _mapping(ctx: click.Context, param: click.Parameter, pairs: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    return dict(pairs)


def _by_element_type(ctx: click.Context, param: click.Parameter, pairs: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    return {ELEMENT_TYPE.convert(name, param, ctx): value for name, value in pairs}


def _installed(ctx: click.Context, param: click.Parameter, runtimes: tuple[str, ...]) -> tuple[str, ...]:
    """The runtimes; one that is not installed is a usage error, since it cannot verify."""
    for name in runtimes:
        if name in ("onnxruntime", "reference"):
            continue
        from reducelower.verification.running.foreign import ADAPTERS, is_foreign, why_unusable

        if not is_foreign(name):
            known = sorted({"onnxruntime", "reference", *ADAPTERS})
            near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise click.UsageError(f"no runtime is called {name!r}{near}", ctx)
        if reason := why_unusable(name):
            raise click.UsageError(f"{reason}; install it, or say {name.partition(':')[0]}:PYTHON", ctx)
    return runtimes


def _pairs(flag: str, name: str, value: ParamType | type, meta: str, text: str) -> Option:
    return option(f"{flag} {name}", text, type=Pairs(value, meta), metavar=meta, multiple=True, callback=_mapping)


def with_options(*groups: Option | Sequence[Option]) -> Callable[[Decorated], Decorated]:
    """Give a command options, alone and in groups; its help lists them in this order."""
    each = [option for group in groups for option in ([group] if callable(group) else group)]
    return lambda function: functools.reduce(lambda inner, option: option(inner), reversed(each), function)


MODELS: Option = click.argument("models", nargs=-1, required=True, type=FILE, metavar="MODEL...")

WITHOUT_OPTION: Option = option("--without", "Operator that must not remain; repeatable.", type=OPERATOR, multiple=True)

MODEL_OPTIONS: Sequence[Option] = (
    _pairs("--set-size", "set_sizes", Integer(min=0), "NAME=N", "Size that takes the place of its name in the model."),
    option("--freeze-defaults", "Treat initializers that are also graph inputs as constants."),
    _pairs("--type", "element_types", ELEMENT_TYPE, "NAME=TYPE", "Element type of a value, if the model states none."),
    _pairs("--rank", "ranks", Integer(min=0, max=LARGEST_RANK), "NAME=N", "Rank of a value, if the model states none."),
)
"""Options for what the model does not state itself."""


def conversion_options(default_rules: str) -> Sequence[Option]:
    """Options for the rules, and for what the model does not state itself."""
    return (
        option(
            "--without-type without_types",
            "Element type that added nodes must not use, such as double.",
            type=ELEMENT_TYPE,
            multiple=True,
        ),
        option(
            "--rules",
            "Rule book that bodies come from.",
            type=RULES,
            default=default_rules,
            metavar="spec|stable|core|DIR",
        ),
        _pairs(
            "--domain",
            "domains",
            Integer(min=0),
            "NAME=N",
            "Version that another domain comes to by rules of your own; 0 for no node of it.",
        ),
        NONEMPTY_OPTION,
        *MODEL_OPTIONS,
    )


NONEMPTY_OPTION: Option = option(
    "--assume-nonempty",
    "No dimension is 0 when the model runs: write nothing that asks for it, and try no such inputs.",
)


REPAIR_OPTION: Option = option(
    "--repair", "First repair what runtimes accept and the checker rejects, as the command repair does."
)


FOR_OPTION: Option = option(
    "--for for_runtimes",
    "Runtime the model is for, such as openvino or onnxruntime@1.16: what it gets wrong or refuses is rewritten; "
    "repeat for a model that is right on all of them.",
    type=RUNTIME,
    multiple=True,
)


def target_of(options: Mapping[str, Any], ctx: click.Context) -> Target:
    """The target that the options describe; a usage error if a runtime does not read the opset version."""
    from reducelower.options import Target

    opset: int | None = options["opset"]
    target = Target(
        opset,
        frozenset(options["without"]),
        frozenset(options["without_types"]),
        assume_nonempty=options["assume_nonempty"],
        domains=options["domains"],
    )
    if not options["for_runtimes"]:
        return target
    from reducelower.runtimes import TargetError, combined

    for runtime in options["for_runtimes"]:
        if opset is not None and opset not in runtime.reads:
            raise click.UsageError(f"{runtime} reads opsets {runtime.reads}, not {opset}", ctx)
    try:
        return replace(target, runtime=combined(options["for_runtimes"]))
    except TargetError as error:
        raise click.UsageError(str(error), ctx) from None


def settings_of(target: Target, options: Mapping[str, Any]) -> Settings:
    """The settings from the options of the same names that were given."""
    from reducelower.options import Settings

    names = {field.name for field in fields(Settings)} & options.keys()
    said = {name: options[name] for name in names if options[name] is not None}
    if not said.get("runtimes", True):
        del said["runtimes"]
    if not said.get("verify", True) and said.get("strict"):
        source = click.get_current_context().get_parameter_source("strict")
        if source is click.core.ParameterSource.COMMANDLINE:  # a file says it for runs that verify
            raise click.UsageError("--verify-strict asks for what --no-verify leaves out; give one of them")
    return Settings(target, **said)


IR_VERSION_OPTION: Option = option(
    "--ir-version",
    "IR version of the output; auto is the one that goes with the opset version.",
    type=IR_VERSION,
    default="auto",
)


REPORT_OPTION: Option = option(
    "--report reports",
    "Write a report: .html to look at, .md for a pull request, .xml (JUnit) or .json; repeatable.",
    type=FILE,
    metavar="FILE",
    multiple=True,
)


VERIFICATION_OPTIONS: Sequence[Option] = (
    _pairs("--dim", "dims", Integer(min=0), "NAME=N", "Size of a symbolic dimension for verification."),
    option(
        "--input inputs",
        "Value of an input for verification, or a file of values by name.",
        type=INPUT_FILE,
        metavar=INPUT_FILE.name,
        multiple=True,
        callback=_mapping,
    ),
    option(
        "--test-data test_data",
        "Folder in the layout of ONNX's test data (test_data_set_0/...): inputs, and outputs to compare.",
        type=FOLDER,
        metavar="DIR",
    ),
    option(
        "--runtime runtimes",
        "What runs the model: onnxruntime, reference, or another runtime, which may be installed for another "
        "Python; repeatable.  [default: onnxruntime, and what --for names]",
        metavar="NAME[:PYTHON]",
        multiple=True,
        callback=_installed,
    ),
    option(
        "--provider",
        "Execution provider of onnxruntime, such as cuda, if the installed build has it.  [default: cpu]",
        metavar="NAME",
        default="",
    ),
    option(
        "--tolerance tolerances",
        "What counts as the same, such as float=16ulp, float16=1e-2 (relative), double=1e-9abs.",
        type=Pairs(TOLERANCE, "TYPE=TOLERANCE"),
        metavar="TYPE=TOLERANCE",
        multiple=True,
        callback=_by_element_type,
    ),
    option(
        "--verify-budget budget",
        "Time for running regions and models.",
        type=Number(min=0, min_open=True),
        default=60.0,
        metavar="SECONDS",
    ),
    option(
        "--verify-memory memory",
        "Memory that running and comparing models may take; weights are not counted in.",
        type=Number(min=0, min_open=True),
        default=1.0,
        metavar="GB",
    ),
    click.option(
        "--cache/--no-cache",
        default=True,
        help="Keep what held in the user's cache folder, or in $REDUCELOWER_CACHE, for later runs.  [default: cache]",
    ),
    option("--verify-strict strict", "Fail if anything is not shown to be equivalent, in every runtime."),
)
"""Options for verification."""


QUIET_OPTION: Option = option("-q --quiet", "Print errors only; the exit status gives the answer.")

JSON_OPTION: Option = option(
    "--json as_json",
    "Print JSON on standard output, an object per model (or runtime, or rule), as the report's schema describes it.",
)

FORMAT_OPTION: Option = option(
    "--format form",
    "Report for people, or problems as GitHub annotations.",
    type=click.Choice(["text", "github"]),
    default="text",
)

EXCLUDE_OPTION: Option = option(
    "--exclude exclude",
    "Leave out models whose path matches, such as 'models/old/**' or '*_int8.onnx'; repeatable.",
    metavar="GLOB",
    multiple=True,
)


WORKERS_OPTIONS: Sequence[Option] = (
    option("--jobs", "Processes for many models.", type=Integer(min=1), default=1),
    option(
        "--scheduler",
        "Dask cluster that does the work; its workers must see the same files.",
        metavar="tcp://HOST:PORT",
    ),
)
"""Options for who does the work."""


OUTPUT_OPTIONS: Sequence[Option] = (
    option("-o --output", "Output file.", type=FILE, metavar="OUT"),
    option("--output-dir", "Folder for the outputs of many models.", type=FOLDER, metavar="DIR"),
    option("--in-place", "Replace the inputs."),
    EXCLUDE_OPTION,
    option("--force overwrite", "Replace existing outputs."),
    option(
        "--external-data",
        "How external data comes to another folder: as a copy that shares blocks where the file system can, or not at "
        "all (keep).",
        type=click.Choice(["copy", "keep"]),
        default="copy",
    ),
    click.option("--verify/--no-verify", default=True, help="Run both models and compare.  [default: verify]"),
    *WORKERS_OPTIONS,
    option(
        "--resume", "Keep records beside the outputs, and skip what an earlier run made of the same model and options."
    ),
    FORMAT_OPTION,
    JSON_OPTION,
    option("-q --quiet", "Print errors only."),
    option("-v --verbose", "List every rewritten node."),
)
"""Options for outputs and messages."""
