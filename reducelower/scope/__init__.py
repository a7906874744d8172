"""How a rule asks about the surroundings of a node, and adds values to the graph."""
