"""The engine: legalize a model for a target."""
