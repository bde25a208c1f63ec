"""The signing keys of a Cluster: where they are, how they are generated, rotated, guarded and loaded."""
