"""Programs that run in pods beside Slurm's daemons and jobs, from the operator's image: the standard library alone.

=========  =======================================================================================================
module     concern
=========  =======================================================================================================
`agent`    beside slurmctld, MariaDB and sackd: which files are mounted, which names are found, how full volumes are
`joblogs`  beside slurmd and in the pods of SlurmJobs: output, input and results without a shared file system
=========  =======================================================================================================

They import nothing of the controllers, so that they start at once and stay small. Controllers import what both sides
agree on: digests, host names, tokens, permits, orders. Pods start them as ``python -m slinky_operator.agent``,
``python -m slinky_operator.agent.sack`` and ``python -m slinky_operator.joblogs``: names that do not move.
"""
