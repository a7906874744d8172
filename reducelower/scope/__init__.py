"""What a rule may know about the place a node stands in."""
