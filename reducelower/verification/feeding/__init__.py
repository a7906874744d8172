"""What a region is fed: which values are possible, and which of them tell most."""
