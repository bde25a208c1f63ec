"""Whether a configuration, or another slurmctld, has been tried by disposable daemons, and what came of it."""
