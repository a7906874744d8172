"""Reading ONNX models: messages, graphs, names, schemas and types. Nothing here knows about targets.

Start with `document` (bytes and message), `graph` (walks and graph paths) and `schemas` (what onnx knows about
operators). `columns` makes large models fast.
"""
