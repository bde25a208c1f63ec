"""What a pod asks for, in the fields of a SlurmJob without a script.

=================  ===========================================================================
module             concern
=================  ===========================================================================
`request`          one pod as a share of a job: what all pods of a group must have in common
`features`         which nodes it may have: nodeSelector and node affinity
`resources`        CPUs, memory and GRES, as the scheduler of Kubernetes counts them
`largest`          what it asks for that no node has
`device_requests`  devices that ResourceClaims ask for
`job_annotations`  fields that annotations ask for, by two sets of names
=================  ===========================================================================

All of it is pure. What Slurm cannot keep is refused by its path with what to do.
"""
