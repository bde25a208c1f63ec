"""What a NodeSet shows: status, conditions, status text and Events."""
