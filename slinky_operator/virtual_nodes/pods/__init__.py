"""Pods on virtual Nodes: each runs as a SlurmJob that it owns, shows it, and takes it along when somebody deletes it.

=============  =============================================================================================
module         concern
=============  =============================================================================================
`translation`  what a pod asks for, in the fields of a SlurmJob
`projection`   the status of a pod that shows its SlurmJob
`deletion`     who has ordered that a pod be deleted: somebody, or an outage
`pod_owners`   what a refusal leads to, and which pod comes in the place of another
`slurmjobs`    the SlurmJobs of pods: made, left behind by an outage, and taken over
`snapshot`     what a pass knows
`plan`         the next step for a pod, and what it shows
`observation`  from caches to the snapshot
`controller`   one pass
`triggers`     what wakes a pod
`spec`         what the controller exports to the process
=============  =============================================================================================

Nothing is remembered but in the objects themselves. A pod names its SlurmJob, and has the operator's finalizer, before
the SlurmJob exists: so a restart finds it, nothing is submitted twice, and who deleted the pod is known when the
operator decides about the job, also after a deletion by force or while the operator was away.
"""
