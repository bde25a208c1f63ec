"""The finalizer of a Cluster, and its teardown."""
