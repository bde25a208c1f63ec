"""What Slurm writes in one text: hostlists, ids of jobs, arrays, TRES, GRES, the ``#SBATCH`` lines of a script."""
