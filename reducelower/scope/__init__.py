"""What a rule may know about the surroundings of a node, and how it adds values to the graph."""
