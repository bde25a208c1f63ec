"""Kind Cluster: its spec by subject, its status, and the kind itself."""
