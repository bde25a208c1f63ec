"""Slurm from plain manifests, without the operator: proves the ground (local Kubernetes, images, Slurm) by itself."""
