"""Maintenance windows: their reservations in Slurm, and what the Cluster shows of them.

`windows`    which reservations Slurm is to have now; pure
`changes`    what has to be made, changed and deleted in Slurm for that; pure
`question`   asks Slurm for its reservations, and makes the changes
`condition`  the conditions about windows and reservations; pure
`part`       when reservations are looked at, Events of windows, and what a Cluster shows; pure

That updates of slurmd pods wait for a window is decided by the NodeSet controller, from the spec and the time alone.
"""
