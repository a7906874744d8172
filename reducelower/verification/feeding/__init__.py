"""Inputs for regions: which values are possible, and which are worth trying."""
