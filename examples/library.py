"""The library call: convert a model in memory, read what is refused, compare two models."""

from __future__ import annotations

from pathlib import Path

import onnx

import reducelower

MODELS = Path(__file__).parent / "models"


def main() -> None:
    model = onnx.load(MODELS / "mean_18.onnx")

    # Stands in for onnx.version_converter.convert_version; the model given stays as it is.
    older = reducelower.convert_version(model, 13)
    print("opset", older.opset_import[0].version)

    # Both models run on the same inputs, every output compared.
    print(reducelower.verify(model, older))

    # What would happen, without converting.
    plan = reducelower.check(model, 11)
    for site in plan.sites:
        print(f"{site.graph}: {site.op_type} {site.node}: {site.rule}")

    # What cannot be done is refused with every reason at once: bfloat16 came with opset 13.
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
