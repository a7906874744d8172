"""Use the library: convert a model in memory, read refusals, compare two models."""

from __future__ import annotations

from pathlib import Path

import onnx

import reducelower

MODELS = Path(__file__).parent / "models"


def main() -> None:
    model = onnx.load(MODELS / "mean_18.onnx")

    # Replaces onnx.version_converter.convert_version; the given model is not changed.
    older = reducelower.convert_version(model, 13)
    print("opset", older.opset_import[0].version)

    # Run both models on the same inputs, and compare every output.
    print(reducelower.verify(model, older))

    # Show what a conversion would do, without converting.
    plan = reducelower.check(model, 11)
    for site in plan.sites:
        print(f"{site.graph}: {site.op_type} {site.node}: {site.rule}")

    # A refusal has all reasons at once: bfloat16 came with opset 13.
    wide = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]>'
        "g (bfloat16[2, 3] x) => (bfloat16[2, 1] y) { axes = Constant <value_ints = [1]> () y = ReduceSum (x, axes) }"
    )
    try:
        reducelower.convert_version(wide, 11)
    except reducelower.ConversionError as error:
        for refusal in error.refusals:
            print(f"refused: {refusal}")


if __name__ == "__main__":
    main()
