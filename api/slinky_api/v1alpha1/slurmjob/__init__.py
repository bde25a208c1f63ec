"""Kind SlurmJob: what is submitted, what else its spec has, its status, and the kind itself."""
