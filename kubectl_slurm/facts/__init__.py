"""What rules see: `objects` of Kubernetes, `pictures` of Slurm, and `reading`, which makes the former of JSON."""
