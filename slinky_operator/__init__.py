"""A Kubernetes operator that runs Slurm and drains nodes before it deletes them."""
