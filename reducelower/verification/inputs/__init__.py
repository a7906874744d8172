"""Inputs for whole models: made, or read from files."""
