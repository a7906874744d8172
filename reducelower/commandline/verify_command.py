"""`reducelower verify`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from reducelower.commandline.options import verification_options

__all__ = ["command"]


@click.command("verify")
@click.argument("before")
@click.argument("after")
@verification_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the values of the inputs.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing; the exit status tells.")
def command(
    before: str,
    after: str,
    dims: Mapping[str, int],
    inputs: Mapping[str, str],
    budget: float,
    strict: bool,
    seed: int,
    quiet: bool,
) -> int:
    """Run two models on the same inputs and compare every output.

    \b
    Example:
      reducelower verify model.onnx model13.onnx --dim batch=4
    """
    from reducelower.commandline import console
    from reducelower.commandline.failures import DONE, REFUSED
    from reducelower.commandline.input_values import read_inputs
    from reducelower.files import read_model
    from reducelower.verification import verify

    models = [read_model(path) for path in (before, after)]
    arrays = read_inputs(inputs, models[0].model)
    left, right = (loaded.path if loaded.external else loaded.model for loaded in models)
    found = verify(left, right, inputs=arrays, dims=dims, budget=budget, strict=strict, seed=seed)
    if not quiet:
        console.result(console.one_line(str(found)))
    return DONE if found.equivalent else REFUSED
