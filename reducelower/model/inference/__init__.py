"""onnx's shape inference, protected from crashes, and the types that users declare."""
