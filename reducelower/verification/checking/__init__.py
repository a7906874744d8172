"""Each distinct region by itself: run on one set of inputs after another, with one finding in the end."""
