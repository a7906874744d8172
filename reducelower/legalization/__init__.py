"""The engine: make a model legal for a target."""
