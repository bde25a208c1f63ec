"""The data of a pass: facts read from objects once and frozen, and the actions of a plan."""
