"""What a pass decides upon and asks for: facts read from objects once and frozen, and the actions of a plan."""
