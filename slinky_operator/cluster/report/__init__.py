"""What a Cluster shows: status, conditions, status text and Events."""
