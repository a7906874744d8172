"""The steps for one model, from a file to an outcome: read, check, legalize, check, verify, and write.

The command line, batches and model reports all use them.
"""
