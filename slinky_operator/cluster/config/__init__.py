"""The rollout of the wanted configuration to the running slurmctld."""
