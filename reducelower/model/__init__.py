"""Reading ONNX models: messages, graphs, names, schemas and types. Nothing here knows about targets.

Start with `document` (bytes and message), `graph` (walks and graph paths), `schemas` (what onnx knows about operators)
and `inference` (types that the model does not state). `columns` and `wire` make large models fast.
"""
