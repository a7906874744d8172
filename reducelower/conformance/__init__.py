"""Finds out by measurement what is legal on a runtime.

A conformance suite of small models (`suite`) runs in worker processes (`process`, `worker`, `runtimes`), each result is
judged against exact values (`judging`) and kept (`results`), and what they have in common becomes a target file
(`distilling`). Whoever probes imports what they need from the modules.
"""
