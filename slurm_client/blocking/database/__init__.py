"""Generated: see :mod:`slurm_client.blocking`."""
