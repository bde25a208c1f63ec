"""What Slurm writes in one text: hostlists, ids of jobs."""
