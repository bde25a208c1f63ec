"""Jobs by state, and jobs that failed because Slurm could not open a file of theirs."""
