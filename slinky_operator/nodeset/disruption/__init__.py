"""What makes a node unavailable, and in which order pods are deleted: updates, repairs, evictions, victims."""
