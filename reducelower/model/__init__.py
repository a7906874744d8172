"""What a model holds, and how it is read; nothing here knows of targets.

Begin with `document` (bytes and message), `graph` (walks and paths), `schemas` (what onnx knows of operators) and
`inference` (types that nothing states). `census`, `nodelist` and `wire` are there for the speed of large models.
"""
