"""The pods of a SlurmJob: one shows its output (`spec.logs`), others copy its files (`spec.prepare`, `spec.results`).

==============  ==========================================================================================
module          concern
==============  ==========================================================================================
`log_upkeep`    keeps the log pod and its Secret: reads what the plan needs, and writes what it says
`log_plan`      what the followers of a job's output get next, and what is shown of their pod
`log_facts`     what Slurm's record says of the part of the job that is shown
`log_pod`       the log pod and its Secret
`copy_upkeep`   keeps the pods that copy: reads what the plan needs, and writes what it says
`copy_plan`     what is done next about a list of copies, and what is shown
`copy_routes`   how the files of a job are reached, and the tokens for them
`copy_pod`      a pod that copies, and its Secret
`routes`        how a file is reached on a node: by the job log server, or on a claim
`bodies`        what all pods and Secrets of a SlurmJob have in common
`pod_state`     whether a pod waits, why it has ended, and when it is replaced
`own_objects`   finds, changes and deletes objects of one SlurmJob, never somebody else's of that name
==============  ==========================================================================================

The programs in the pods, and the server beside slurmd, are in `slinky_operator.pod_programs.joblogs`. The key of a
Cluster's servers is read here and never leaves the operator: only tokens for one file, of one job, do.
"""
