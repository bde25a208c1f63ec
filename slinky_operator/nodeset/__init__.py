"""The NodeSet controller: a set of slurmd pods, none of which is deleted while it may hold a job.

The way of the data is `observe` -> `plan` -> `act` -> `status`; `controller` strings them together. All rules are pure,
and what acts has none of its own:

=============  =====================================================================
module         concern
=============  =====================================================================
`facts`        what a pod's object tells, and only that
`identity`     whose a Slurm node is
`drain`        whose a drain is, and when a node holds nothing any more
`podstate`     the one state each pod is in, and whether it may be deleted
`victims`      which pods go first
`causing`      what each node is to be drained for
`slurm_steps`  what a plan asks of Slurm, and does by its word
`pod_steps`    what it does to pods, revisions and claims without it
`looking`      when to look again
`rollout`      which pods are replaced for an update, within the budget
`repairs`      which pods are made anew because they never register
`ordinals`     names
`revision`     the hash that tells whether a pod is up to date
`history`      revisions as they are recorded, and how long they are kept
`merge`        a user's template over a generated one
`conf`         what slurmd registers with
`pod`          the pod that is created
`generated`    what the operator says of it
`arguments`    what slurmd is started with
`template`     what a user's template may not say
`guard`        the second owner of the pods
-------------  ---------------------------------------------------------------------
`waking`       which NodeSets an event is about
`indexes`      by what the caches are looked up
`memory`       what is remembered of a NodeSet between passes
-------------  ---------------------------------------------------------------------
`act`          the order in which a plan is carried out, and what a failure stops
`means`        what a pass has to act with, and what became of its plan
`telling`      what is written to Slurm
`removal`      pods that are deleted or may be evicted, each on a fresh answer
`making`       pods that are created
`marks`        labels and conditions on pods
`bookkeeping`  revisions and claims
`ending`       jobs that are cancelled or requeued
`tenure`       the NodeSet's finalizer and guard
`asking`       questions put to Slurm itself
`batches`      many calls at once, and not too many
=============  =====================================================================

The Cluster controller is not imported; what the two tell each other stands in API fields.
"""
