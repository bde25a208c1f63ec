"""Carries out a plan: `executor` takes its actions in order; `objects` writes to Kubernetes, `slurm` talks to Slurm."""
