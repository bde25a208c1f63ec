"""The rollout of the wanted configuration to the running slurmctld.

================  =========================================================================================
module            concern
================  =========================================================================================
`addresses`       nodes outside Kubernetes whose names do not resolve in slurmctld's pod
`candidate`       a configuration on its way to slurmctld, and what its next step can be
`held_nodesets`   NodeSets whose part of the configuration is held back
`loading`         makes slurmctld load what its ConfigMap holds
`manual_changes`  partitions whose state an administrator has set with `scontrol`
`membership`      which NodeSets are in the configuration, and their finalizers
`outcome`         what follows from the next step: actions, the status, and what is reported
`rendering`       renders the configuration: as the spec wants it, and with what must stay for now
`settling`        slurmctld loads the files, they are saved as good, or rolled back
`stored`          the configuration in Kubernetes: what slurmctld mounts, the last good one, and the status
`writing`         disposable daemons try a new configuration, then it is written
================  =========================================================================================
"""
