"""Whether disposable daemons have tried a configuration, or a new slurmctld pod, and the outcome.

=================  ===========================================================================================
module             concern
=================  ===========================================================================================
`attempts`         one preflight: whether to start it, and what its pod shows
`decision`         preflights: whether a configuration has been tried, and the outcome
`jobs_copy`        jobs: whether slurmctld, with a copy of them, ends any by a new configuration
`pod_troubles`     which slurmds in a preflight's pod cannot be tried for reasons of their own
`replacement`      slurmctld's pod: whether it may be replaced by one from another template
`running_release`  which release of Slurm slurmctld runs, and whether its state may be given to another one
`single_trial`     slurmds that preflights leave out: they are retried while the Cluster is idle
`slurmd_kinds`     the ways in which slurmd is run in a Cluster, each once: what a preflight tries
`state_copy`       slurmctld's state: whether slurmctld of another image reads it
`state_room`       the volume of slurmctld's state: whether slurmctld can save it when it ends
=================  ===========================================================================================
"""
