"""The agent beside slurmctld: tells by HTTP which configuration files are mounted, and which names in them it can find.

=============  ===========================================================================================
module         concern
=============  ===========================================================================================
`connections`  connections of callers, served side by side in one thread: with a bound
`files`        digests of files, on both sides: the agent's of what is mounted
`hosts`        which host names a slurm.conf makes slurmctld look up
`resolver`     resolves host names in slurmctld's own pod, in the background
`sack`         ``python -m slinky_operator.agent.sack SOCKET PORT``
`server`       server for what the operator asks beside slurmctld
`volumes`      how much room volumes have, looked at in threads: a file system that hangs delays no caller
=============  ===========================================================================================

Beside slurmctld and MariaDB it tells how much room their volumes have, too.

The kubelet refreshes a mounted ConfigMap when it sees fit, so that the operator cannot know from the API server alone
what slurmctld would read. This process sees the same volume and no key. It runs from the operator's image, and uses
nothing but a few modules of the standard library, so that it starts at once and stays small.
"""
