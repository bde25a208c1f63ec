"""Accounting of a managed Cluster: which daemons it needs, the Secrets they mount, and what slurm.conf says. Pure."""
