"""Decoders of what slurmdbd keeps, one module for each of `slurm_client.models.database`."""
