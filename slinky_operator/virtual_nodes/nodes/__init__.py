"""Virtual Nodes: one for each partition, kept like what Slurm says of it, and their Leases."""
