"""What every controller needs and no Slurm rule: children, Secrets, calls side by side, texts."""
