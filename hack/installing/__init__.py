"""What is installed into a local Kubernetes.

The operator (`operator`), Slurm without it (`plain`), and ``make demo`` (`demo`).
"""
