"""One model's way, from a file to an outcome: read, check, legalize, check, verify, and write last.

The command line, batches and reports of what is in a model all go this way.
"""
