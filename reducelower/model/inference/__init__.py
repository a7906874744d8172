"""onnx's shape inference, protected, and what is known of ranks and declared types."""
