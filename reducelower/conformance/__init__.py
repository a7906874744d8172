"""Measure what is legal on a runtime.

A suite of small models (`suite`) runs in worker processes (`process`, `worker`, `runtimes`). Each result is judged by
exact values (`judging`) and stored (`running`), and what failures have in common becomes a target file (`distilling`).
"""
