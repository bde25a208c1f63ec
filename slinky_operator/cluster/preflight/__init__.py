"""Whether disposable daemons have tried a configuration, or a new slurmctld pod, and the outcome."""
