"""`reducelower convert`, `expand`, `raise`, `repair` and `check`: their options; `conversion` runs them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from reducelower.cli.options import (
    CONVERSION,
    MODEL,
    OUTPUT,
    VERIFICATION,
    has_goal,
    option,
    settings_of,
    takes,
    target_of,
)
from reducelower.cli.types import OPERATOR, OPSET, RULES
from reducelower.options import Target
from reducelower.text import did_you_mean

__all__ = ["check", "convert", "expand", "raise_", "repair"]


@click.command(
    "convert",
    params=takes(
        "models",
        option("--opset", "Opset version to convert to.  [default with --for: whichever suits it]", type=OPSET),
        *("--for", *OUTPUT, "--without"),
        option(
            "--raise is_raised",
            "Then fold what spells out a normalization or a composite reduction into that operator, as raise does.",
        ),
        *("--rules", *CONVERSION),
        *("--ir-version", "--repair", *VERIFICATION, "--report"),
    ),
)
@click.pass_context
def convert(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
    """Convert models to another opset version or for a runtime, and verify them.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'.

    \b
    Examples:
      reducelower convert model.onnx -o model13.onnx --opset 13
      reducelower convert model.onnx -o for_openvino.onnx --for openvino
      reducelower convert model.onnx -o model17.onnx --opset 17 --raise
      reducelower convert models/ --output-dir converted/ --opset 17 --jobs 4 --resume
    """
    if not has_goal(options):
        raise click.UsageError(
            "say what to convert to: --opset N, --for NAME, --without OPERATOR or several; "
            "--ir-version N alone changes nothing else",
            ctx,
        )
    from reducelower.cli.conversion import convert_all

    settings = settings_of(target_of(options, ctx), options)
    if options["is_raised"]:
        settings = replace(settings, raised=())
    return convert_all("convert", models, settings, options)


@click.command(
    "expand",
    params=takes(
        "models",
        option(
            "--op operators",
            "Operator to replace; repeatable.  [default: the composite Reduce operators]",
            type=OPERATOR,
            multiple=True,
        ),
        *OUTPUT,
        option("--rules", "Rule book that bodies come from.", type=RULES, default="spec"),
        *(*CONVERSION, "--repair", *VERIFICATION, "--report"),
    ),
)
@click.pass_context
def expand(ctx: click.Context, /, models: tuple[str, ...], operators: tuple[str, ...], **options: Any) -> int:
    """Replace composite Reduce operators by simpler ones, at the model's own opset version, and verify.

    Normalizations (LayerNormalization, RMSNormalization, Softmax ...), which are made of reductions as well, are
    replaced where --op names them.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'.

    \b
    Examples:
      reducelower expand model.onnx -o expanded.onnx --rules stable
      reducelower expand model.onnx -o expanded.onnx --op ReduceLogSumExp
      reducelower expand model.onnx -o expanded.onnx --op LayerNormalization --rules stable --without-type float
    """
    from reducelower.cli.conversion import convert_all
    from reducelower.rulebook import load_book

    names = operators or load_book(options["rules"]).reductions
    settings = settings_of(target_of({**options, "without": names}, ctx), options)
    return convert_all("expand", models, replace(settings, ir_version="keep"), options)


@click.command(
    "raise",
    params=takes(
        "models",
        option(
            "--op operators",
            "Operator to raise to; repeatable.  [default: all that there are forms for]",
            type=OPERATOR,
            multiple=True,
        ),
        *(*OUTPUT, *MODEL, "--repair", *VERIFICATION, "--report"),
    ),
)
def raise_(models: tuple[str, ...], operators: tuple[str, ...], **options: Any) -> int:
    """Fold primitive forms into the operators they spell out, and verify: the way back from expand.

    Composite Reduce operators, LayerNormalization, RMSNormalization, GroupNormalization, Softmax, LogSoftmax and Gelu,
    if the model's opset version has them. What only looks like one of them is left as it is.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'.

    \b
    Examples:
      reducelower raise expanded.onnx -o model.onnx
      reducelower raise expanded.onnx -o model.onnx --op LayerNormalization
    """
    from reducelower.cli.conversion import convert_all
    from reducelower.recompose import known_operators

    raisable = known_operators()
    for name in operators:
        if name not in raisable:
            raise click.UsageError(f"there is no form of {name} to look for{did_you_mean(name, raisable)}")
    settings = replace(settings_of(Target(), options), ir_version="keep", raised=operators)
    return convert_all("raise", models, settings, options)


@click.command("repair", params=takes("models", *OUTPUT, *MODEL, *VERIFICATION, "--report"))
def repair(models: tuple[str, ...], **options: Any) -> int:
    """Repair models that runtimes accept and the ONNX checker rejects, at their own opset version.

    Puts nodes in order, adds missing opset imports, makes the IR version fit, and drops stated types that contradict
    what the nodes yield. It lists what it did. What the model computes stays the same.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'.

    \b
    Examples:
      reducelower repair model.onnx -o repaired.onnx
      reducelower repair models/ --output-dir repaired/
    """
    from reducelower.cli.conversion import convert_all

    settings = replace(settings_of(Target(), options), ir_version="keep", repair=True)
    return convert_all("repair", models, settings, options)


@click.command(
    "check",
    params=takes(
        "models",
        option("--opset", "Opset version that the models should have.  [default: the model's own]", type=OPSET),
        *("--for", "--without", "--rules", *CONVERSION, "--ir-version"),
        *("--exclude", "--jobs", "--report", "--format", "--json", "--quiet", "--verbose"),
    ),
)
@click.pass_context
def check(ctx: click.Context, /, models: tuple[str, ...], **options: Any) -> int:
    """Say what a conversion would rewrite and what it would refuse; nothing is written.

    MODEL is a file, a folder or a pattern such as 'models/**/*.onnx'. The exit status is 0 if every model fits
    as it is, 1 if one is not, 2 if one cannot be read. Where a model can go says inspect.

    \b
    Examples:
      reducelower check models/ --opset 13 --format github
      reducelower check model.onnx --for openvino
    """
    if not has_goal(options):
        raise click.UsageError(
            "say what to check for: --opset N, --for NAME, --without OPERATOR or several; "
            "inspect says where models can go",
            ctx,
        )
    from reducelower.cli.conversion import check_all

    settings = settings_of(target_of(options, ctx), options)
    return check_all(models, settings, options)
