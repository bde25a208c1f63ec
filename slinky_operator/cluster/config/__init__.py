"""How far the wanted configuration has come on its way to the running slurmctld."""
