"""Slurm from plain manifests, without the operator: tests the local Kubernetes, the images and Slurm alone."""
