"""Rewrites as lemmas: each distinct one is settled once, and the source with all of them applied is the result."""
