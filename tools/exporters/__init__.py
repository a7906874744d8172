"""Models as exporters write them, converted and run."""
