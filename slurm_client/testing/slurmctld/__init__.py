"""What slurmctld does of its own accord in the pretended cluster, one concern a module: its queue, and how jobs end."""
