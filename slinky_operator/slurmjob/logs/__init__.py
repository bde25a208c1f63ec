"""The pod `<name>-logs` of a SlurmJob, which shows the job's output and ends with its exit code (`spec.logs`).

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`placing`        where a job writes, decided before its submission
`facts`          what Slurm's record says of the part of the job that is shown
`streams`        by which way a follower reaches a file, and the tokens for it
`nodes`          where a job can run, from caches
`bodies`         pod and Secret
`pod_life`       when a pod that has ended is replaced, and one that does not start is looked after
`upkeep`         writes both, and changes the job's file as the job goes on
===============  ==========================================================================================

Server and follower themselves are in `slinky_operator.joblogs`. The key of a Cluster is read here, and never leaves the
operator: only tokens for one file, of one job, do.
"""
