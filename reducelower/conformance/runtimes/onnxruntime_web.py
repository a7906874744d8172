"""onnxruntime-web: its WebAssembly kernels, run by Node.js with the package installed in the current folder.

The environment variable ORT_WEB_FOLDER names another folder whose ``node_modules`` has it. ORT_WEB_PROVIDER=webgpu runs
its WebGPU kernels, and those of WebAssembly for what they lack; Node.js needs the package webgpu for that.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

_PROGRAM = """
const provider = process.env.ORT_WEB_PROVIDER || 'wasm';
if (provider === 'webgpu') {
  const {create, globals} = require('webgpu');
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis, 'navigator', {value: {gpu: create([])}, configurable: true});
  // The package does not accept memory shared by threads, such as that of WebAssembly.
  const write = GPUQueue.prototype.writeBuffer;
  GPUQueue.prototype.writeBuffer = function (buffer, at, data, ...part) {
    return write.call(this, buffer, at, data.slice(), ...part);
  };
}
const ort = require(provider === 'webgpu' ? 'onnxruntime-web/webgpu' : 'onnxruntime-web');
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'fatal';
const say = text => process.stdout.write(text + '\\n');
say(JSON.stringify({version: ort.env.versions.web || ort.env.versions.common}));
const bytes = text => { const b = Buffer.from(text, 'base64'); return new Uint8Array(b).buffer; };
const arrays = {float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
  bool: Uint8Array, float16: typeof Float16Array === 'undefined' ? Uint16Array : Float16Array};
async function answer(request) {
  const model = new Uint8Array(bytes(request.model));
  const session = await ort.InferenceSession.create(model, {executionProviders: [provider]});
  const feeds = {};
  for (const [name, value] of Object.entries(request.inputs))
    feeds[name] = new ort.Tensor(value.type, new arrays[value.type](bytes(value.data)), value.dims);
  const results = await session.run(feeds);
  const outputs = session.outputNames.map(name => {
    const {type, dims, data} = results[name];
    return {type, dims, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')};
  });
  await session.release();
  return {outputs};
}
const lines = require('readline').createInterface({input: process.stdin});
(async () => {
  for await (const line of lines)
    say(JSON.stringify(await answer(JSON.parse(line)).catch(error => ({error: String(error.message || error)}))));
})();
"""

_started: list[subprocess.Popen[str]] = []


def version() -> str:
    """The version installed."""
    folder = Path(os.environ.get("ORT_WEB_FOLDER", "."))
    node = subprocess.Popen(
        ["node", "-e", _PROGRAM], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    atexit.register(node.kill)
    _started[:] = [node]
    first = _read(node)
    if first is None:
        raise ImportError("Node.js finds no package onnxruntime-web here; ORT_WEB_FOLDER names the folder that has it")
    return str(first["version"])


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Run a model in a session of its own."""
    import numpy as np

    (node,) = _started
    assert node.stdin is not None
    feeds = {
        name: {
            "type": value.dtype.name,
            "dims": list(value.shape),
            "data": _text(np.ascontiguousarray(value).tobytes()),
        }
        for name, value in inputs.items()
    }
    node.stdin.write(json.dumps({"model": _text(model), "inputs": feeds}) + "\n")
    node.stdin.flush()
    answer = _read(node)
    if answer is None:
        # End the worker as well, so that the next model gets a new one.
        os._exit(1)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return [
        np.frombuffer(base64.b64decode(value["data"]), value["type"]).reshape(value["dims"])
        for value in answer["outputs"]
    ]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(node: subprocess.Popen[str]) -> dict[str, Any] | None:
    """The next answer, or None if Node.js has ended; other output of the package is skipped."""
    assert node.stdout is not None
    for line in node.stdout:
        if line.startswith("{"):
            return dict(json.loads(line))
    return None
