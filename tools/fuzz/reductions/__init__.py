"""Valid models around Reduce nodes, drawn at random for `tests/fuzz/test_reductions.py`."""
