#!/usr/bin/env bash
# The command line: down, up again, and every other command once. Outputs go to the folder given (default: out).
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-../out}
mkdir -p "$out"

say() { printf '\n$ %s\n' "$*"; "$@"; }

# A PyTorch model with reductions in both branches of an If, exported at opset 21: down to 13, and up again.
say reducelower convert models/branches_21.onnx -o "$out/branches_13.onnx" --opset 13 --force
say reducelower convert "$out/branches_13.onnx" -o "$out/branches_21.onnx" --opset 21 --force

# A scikit-learn model for a runtime that has no ReduceLogSumExp.
say reducelower convert models/gaussian_mixture_20.onnx -o "$out/gaussian_mixture_13.onnx" \
    --opset 13 --without ReduceLogSumExp --force -v

# Two files compared by running both.
say reducelower verify models/branches_21.onnx "$out/branches_21.onnx"

# What would happen to a folder of models: status 1 says that there is work.
say reducelower check models --opset 18 || echo "(exit status $?: there is work)"
