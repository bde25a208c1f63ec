"""Rules about a Slurm node's record: its owner, the owner of its drain, what may be done with it."""
