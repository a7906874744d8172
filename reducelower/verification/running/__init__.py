"""Runtimes that models are run in, and models on their way there."""
