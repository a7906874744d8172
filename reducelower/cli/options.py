"""Options that commands share, by their flags, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from reducelower.arguments import LARGEST_RANK
from reducelower.cli.types import (
    ELEMENT_TYPE,
    FILE,
    INPUT_FILE,
    IR_VERSION,
    OPERATOR,
    POSITIVE,
    RULES,
    RUNNER,
    RUNTIME,
    TOLERANCES,
    Pairs,
)

if TYPE_CHECKING:
    from reducelower.options import Settings, Target

__all__ = [
    "CONVERSION", "MODEL", "OUTPUT", "VERIFICATION", "has_goal", "option", "settings_of", "takes",
    "target_of",
]  # fmt: skip

_COUNT = click.IntRange(min=0)

MODEL = ("--set-size", "--freeze-defaults", "--type", "--rank")
"""Options for what the model does not state itself."""

CONVERSION = ("--without-type", "--without-domain", "--assume-nonempty", *MODEL)
"""Options for what is written, besides the target."""

OUTPUT = (
    *("--output", "--output-dir", "--in-place", "--exclude", "--force", "--external-data", "--verify", "--jobs"),
    *("--resume", "--format", "--json", "--quiet", "--verbose"),
)
"""Options for outputs and messages."""

VERIFICATION = (
    *("--dim", "--input", "--test-data", "--runtime", "--provider", "--tolerance", "--verify-budget"),
    *("--verify-memory", "--cache", "--verify-strict"),
)
"""Options for verification."""


def takes(*wanted: str | click.Parameter) -> list[click.Parameter]:
    """The parameters of a command: shared ones by their flags, and its own; its help lists them in this order."""
    return [_SHARED[each] if isinstance(each, str) else each for each in wanted]


def option(flags: str, text: str, **how: Any) -> click.Option:
    """An option by its flags, and the name of its parameter if that is another, with spaces between them.

    Without anything else it takes no value. Help shows the default that a value has.
    """
    said = {"show_default": how.get("default", "") != "", **how} if how else {"is_flag": True}
    return click.Option(flags.split(), help=text, **said)


def _pairs(flags: str, text: str, pairs: Pairs) -> click.Option:
    def mapping(ctx: click.Context, param: click.Parameter, given: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
        return dict(given)

    return option(flags, text, type=pairs, multiple=True, callback=mapping)


_ALL = (
    click.Argument(["models"], nargs=-1, required=True, type=FILE, metavar="MODEL..."),
    # What to convert to
    option("--without", "Operator that must not remain; repeatable.", type=OPERATOR, multiple=True),
    option(
        "--for for_runtimes",
        "Runtime the model is for, such as openvino or onnxruntime@1.16: what it gets wrong or refuses is rewritten; "
        "repeat for a model that is right on all of them.",
        type=RUNTIME,
        multiple=True,
    ),
    option(
        "--ir-version",
        "IR version of the output; auto is the one that goes with the opset version.",
        type=IR_VERSION,
        default="auto",
    ),
    option(
        "--without-type without_types",
        "Element type that added nodes must not use, such as double.",
        type=ELEMENT_TYPE,
        multiple=True,
    ),
    option("--rules", "Rule book that bodies come from.", type=RULES, default="stable"),
    option(
        "--without-domain without_domains",
        "Domain of a vendor, such as com.microsoft, whose operators rules of your own replace.",
        multiple=True,
    ),
    option(
        "--assume-nonempty",
        "No dimension is 0 when the model runs: write nothing that asks for it, and try no such inputs.",
    ),
    option("--repair", "First repair what runtimes accept and the checker rejects, as the command repair does."),
    # What the model does not state
    _pairs("--set-size set_sizes", "Size that takes the place of its name in the model.", Pairs("NAME=N", _COUNT)),
    option("--freeze-defaults", "Treat initializers that are also graph inputs as constants."),
    _pairs(
        "--type element_types",
        "Element type of a value, if the model states none.",
        Pairs("NAME=TYPE", ELEMENT_TYPE),
    ),
    _pairs(
        "--rank ranks",
        "Rank of a value, if the model states none.",
        Pairs("NAME=N", click.IntRange(min=0, max=LARGEST_RANK)),
    ),
    # Verification
    click.Option(["--verify/--no-verify"], default=True, help="Run both models and compare.  [default: verify]"),
    _pairs("--dim dims", "Size of a symbolic dimension for verification.", Pairs("NAME=N", _COUNT)),
    _pairs("--input inputs", "Value of an input for verification, or a file of values by name.", INPUT_FILE),
    option(
        "--test-data test_data",
        "Folder in the layout of ONNX's test data (test_data_set_0/...): inputs, and outputs to compare.",
        type=FILE,
        metavar="DIR",
    ),
    option(
        "--runtime runtimes",
        "What runs the model: onnxruntime, reference, or another runtime, which may be installed for another "
        "Python; repeatable.  [default: onnxruntime, and what --for names]",
        type=RUNNER,
        multiple=True,
    ),
    option(
        "--provider",
        "Execution provider of onnxruntime, such as cuda, if the installed build has it.  [default: cpu]",
        metavar="NAME",
        default="",
    ),
    _pairs(
        "--tolerance tolerances",
        "What counts as the same, such as float=16ulp, float16=1e-2 (relative), double=1e-9abs.",
        TOLERANCES,
    ),
    option(
        "--verify-budget budget",
        "Time for running regions and models.",
        type=POSITIVE,
        default=60.0,
        metavar="SECONDS",
    ),
    option(
        "--verify-memory memory",
        "Memory that running and comparing models may take; weights are not counted in.",
        type=POSITIVE,
        default=1.0,
        metavar="GB",
    ),
    click.Option(
        ["--cache/--no-cache"],
        default=True,
        help="Keep what held in the user's cache folder, or in $REDUCELOWER_CACHE, for later runs.  [default: cache]",
    ),
    option("--verify-strict strict", "Fail if anything is not shown to be equivalent, in every runtime."),
    # Outputs
    option("-o --output", "Output file.", type=FILE, metavar="OUT"),
    option("--output-dir", "Folder for the outputs of many models.", type=FILE, metavar="DIR"),
    option("--in-place", "Replace the inputs."),
    option(
        "--exclude exclude",
        "Leave out models whose path matches, such as 'models/old/**' or '*_int8.onnx'; repeatable.",
        metavar="GLOB",
        multiple=True,
    ),
    option("--force overwrite", "Replace existing outputs."),
    option(
        "--external-data",
        "How external data comes to another folder: as a copy that shares blocks where the file system can, or not at "
        "all (keep).",
        type=click.Choice(["copy", "keep"]),
        default="copy",
    ),
    option("--jobs", "Processes for many models.", type=click.IntRange(min=1), default=1, metavar="N"),
    option(
        "--resume", "Keep records beside the outputs, and skip what an earlier run made of the same model and options."
    ),
    # What is said
    option(
        "--report reports",
        "Write a report: .html to look at, .md for a pull request, .xml (JUnit) or .json; repeatable.",
        type=FILE,
        multiple=True,
    ),
    option(
        "--format form",
        "Report for people, or problems as GitHub annotations.",
        type=click.Choice(["text", "github"]),
        default="text",
    ),
    option(
        "--json as_json",
        "Print JSON on standard output, an object per model, as the report's schema describes it.",
    ),
    option("-q --quiet", "Print errors only; the exit status gives the answer."),
    option("-v --verbose", "Say more: each rewritten node, distances in ULP, inputs that show a difference."),
)
_SHARED: Mapping[str, click.Parameter] = {max(each.opts, key=len): each for each in _ALL}


def has_goal(options: Mapping[str, Any]) -> bool:
    """Whether the options say what a model shall fit, besides staying at its own opset version."""
    names = ("opset", "for_runtimes", "without", "without_domains")
    return any(options[name] for name in names) or options["ir_version"] not in ("auto", "keep")


def target_of(options: Mapping[str, Any], ctx: click.Context) -> Target:
    """The target that the options describe; a usage error if a runtime does not read the opset version."""
    from reducelower.options import Target

    opset: int | None = options.get("opset")
    target = Target(
        opset,
        frozenset(options["without"]),
        frozenset(options["without_types"]),
        assume_nonempty=options["assume_nonempty"],
        without_domains=options["without_domains"],
    )
    if not options.get("for_runtimes"):
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
