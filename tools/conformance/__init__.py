"""Programs around the conformance suite that need the runtimes themselves."""
