"""Pods that Slurm places: each group of them has a SlurmJob without a script, and gets its Nodes once that runs.

=================  ==================================================================
module             concern
=================  ==================================================================
`model`            rules: from what a pass knows to what it does
`absent_hosts`     Kubernetes Nodes that pods wait for and that do not exist
`owners`           the objects that hold groups together, read one by one
`device_reader`    ResourceClaims of pods, and devices of the nodes of their jobs
`claim_writes`     writes devices into ResourceClaims
`evictions`        how many pods are evicted, of one namespace and of all together
`clusters`         which Cluster places a group
`observation`      from caches to the snapshot
`controller`       one pass
`left_out`         says on a pod that there is no room for it in the cache
`triggers`         what wakes a group
`spec`             what the controller exports to the process
=================  ==================================================================

Nothing that decides is remembered but in the objects themselves, except since when a Node is missing: the name of a
SlurmJob follows from its group, and a placed pod names its SlurmJob and its task. What an operator that ends leaves
half done, the next one finishes.
"""
