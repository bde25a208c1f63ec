"""Generated: see :mod:`slurm_client.sync`."""
