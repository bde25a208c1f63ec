"""Rules about a Slurm node's record: whose it is, whose its drain is, what may be done with it."""
