"""Carries out the plan of a SlurmJob: what is asked of Slurm, and what is written to the object and told of it."""
