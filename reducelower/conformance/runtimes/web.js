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
const say = text => process.stdout.write(text + '\n');
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
