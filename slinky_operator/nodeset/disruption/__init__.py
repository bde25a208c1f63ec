"""What makes a node unavailable, and in which order pods go: updates, repairs, evictions, victims."""
