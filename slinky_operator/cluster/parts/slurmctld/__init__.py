"""slurmctld: its objects, its pod, and whether it waited for itself and was ended."""
