"""Maintenance windows: their reservations in Slurm, and what the Cluster shows of them.

`windows`    which reservations Slurm is to have now; pure
`changes`    what has to be made, changed and deleted in Slurm for that; pure
`question`   asks Slurm for its reservations, and makes the changes
`step`       when that is done, and the Events of a window; pure
`condition`  the conditions about windows and reservations; pure
`part`       what a Cluster shows

That updates of slurmd pods wait for a window is decided by the NodeSet controller, from the spec and the time alone.
"""
