"""Carries out a plan: writes to Kubernetes and to Slurm, each checked again right before it."""
