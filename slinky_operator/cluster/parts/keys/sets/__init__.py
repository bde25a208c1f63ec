"""What is in a `slurm.jwks`: its form, the sizes of keys, and which set may replace which."""
