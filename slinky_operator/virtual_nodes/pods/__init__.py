"""Pods on virtual Nodes: each becomes a SlurmJob that it owns, or is refused in a sentence."""
