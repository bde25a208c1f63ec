"""The operator's own metrics: what it does, what it waits for, and how its objects are. Slurm's are the exporter's."""
