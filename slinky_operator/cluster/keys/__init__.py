"""The signing keys of a Cluster: where they are, how they are made, rotated, guarded and loaded."""
