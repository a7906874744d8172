"""Programs for the conformance suite that need the runtimes themselves."""
