"""Carries out a plan: writes to Kubernetes, questions to Slurm, reloads."""
