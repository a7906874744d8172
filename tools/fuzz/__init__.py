"""Random models, judged by two runtimes: single nodes of every operator, and graphs made of them.

`python -m tools.fuzz` runs them; `tools.fuzz.graphs.random_graphs` yields graphs for other tests.
"""
