"""Carries out a plan: writes to Kubernetes, queries to Slurm, reloads."""
