"""slurmrestd: a Deployment without any key, and a Service in front of it."""
