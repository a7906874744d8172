"""Inputs of whole models: made, given, or read from files."""
