"""What slurmdbd keeps: job history, accounts, clusters, and slurmdbd itself. All of it is in `slurm_client.models`."""
