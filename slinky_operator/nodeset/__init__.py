"""The NodeSet controller: a set of slurmd pods, none of which is deleted while it may hold a job.

The way of the data is `observe` -> `plan` -> `act` -> `status`; `controller` strings them together. All rules are pure,
and what acts has none of its own:

================  =====================================================================
module            concern
================  =====================================================================
`snapshot`        everything one pass decides upon
`facts`           what a pod's object tells, and only that
`hosts`           what a Kubernetes Node tells
`identity`        whose a Slurm node is
`drain`           whose a drain is, and when a node holds nothing any more
`podstate`        the one state each pod is in, and whether it may be deleted
`availability`    when a pod has come up, and serves
`layout`          how many pods there are to be, and where there is room
`matching`        which Kubernetes Nodes a pod may stand on
`places`          what pods and nodes are called where they stand
`ordinals`        names with numbers
`pins`            which Node an ordinal belongs to
`creation`        which pods are made now, and why others wait
`victims`         which pods go first
`causing`         what each node is to be drained for
`deadline`        which drains have taken too long
`rollout`         which pods are replaced for an update, within the budget
`repairs`         which pods are made anew because they never register
`records`         what becomes of a node's record without its pod
`protection`      which pods are not to be evicted
`traits`          what Kubernetes Nodes give to Slurm nodes
`slurm_steps`     what a plan asks of Slurm, and does by its word
`pod_steps`       what it does to pods, revisions and claims without it
`looking`         when to look again
`actions`         what a plan may ask for
`assessment`      what it found, for whom it may concern
`shown`           what pods show of their nodes
`hindrance`       why a pod does not run, in Kubernetes' words
`stripped`        pods that have lost their labels
`out_of_service`  nodes that get no job, in Slurm's words
`troubles`        what keeps a NodeSet from its spec
`progress`        what it is busy with
`summary`         the status text that says both
`counting`        how many nodes are in which state
`announcing`      which troubles are told in Events
`words`           how lists, times and long texts are written
----------------  ---------------------------------------------------------------------
`revision`        the hash that tells whether a pod is up to date
`history`         revisions as they are recorded, and how long they are kept
`claims`          claims of pods, and how long they are kept
`conf`            what slurmd registers with
`arguments`       what slurmd is started with
`generated`       what the operator says of a pod
`template`        what a user's template may not say
`pod`             the pod that is created
`guard`           the second owner of the pods
`takeover`        pods that another operator made
----------------  ---------------------------------------------------------------------
`waking`          which NodeSets an event is about
`indexes`         by what the caches are looked up
`readings`        what is read of objects once, until they change
`memory`          what is remembered of a NodeSet between passes
`reserved`        names that NodeSets are just taking
`ports`           what is used of Kubernetes and of Slurm
----------------  ---------------------------------------------------------------------
`act`             the order in which a plan is carried out, and what a failure stops
`means`           what a pass has to act with, and what became of its plan
`telling`         what is written to Slurm
`removal`         pods that are deleted or may be evicted, each on a fresh answer
`making`          pods that are created
`marks`           labels and conditions on pods
`bookkeeping`     revisions and claims
`ending`          jobs that are cancelled or requeued
`tenure`          the NodeSet's finalizer and guard
`asking`          questions put to Slurm itself
`batches`         many calls at once, and not too many
================  =====================================================================

The Cluster controller is not imported; what the two tell each other stands in API fields.
"""
