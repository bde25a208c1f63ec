"""The exporter of a Cluster: its objects, and whether it serves metrics."""
