"""What an administrator needs for slurmds outside Kubernetes, as texts to copy, in a ConfigMap."""
