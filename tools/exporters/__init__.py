"""Models as exporters write them, and what comes of them."""
