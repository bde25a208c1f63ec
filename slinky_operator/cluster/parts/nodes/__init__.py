"""Slurm's nodes, for the status: how many there are by state, and which get no jobs."""
