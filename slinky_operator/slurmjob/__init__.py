"""The SlurmJob controller: batch jobs as objects.

==============  =======================================================================================
module          concern
==============  =======================================================================================
`model`         what is known of a SlurmJob, what is done next, and what is shown: pure rules
`queues`        one poll of the jobs of each Cluster, for all SlurmJobs in it
`observation`   from caches to the snapshot
`controller`    one pass
`execute`       what a step does: submission, dry run, orders, questions to slurmdbd, status and Events
`reading`       reads Slurm's records, in a thread where they are many
`memory`        what is remembered until the next one
`ports`         what it needs of the API server
`triggers`      what wakes a SlurmJob
`logs`          the pod that shows a job's output
`files`         the pods that copy a job's files
`spec`          what the controller exports to the process
`job_list`      what the list of a Cluster's jobs shows of one SlurmJob
`own_objects`   pods and Secrets of one SlurmJob, found by name and never somebody else's
`translations`  each version of a SlurmJob translated once for each user, in a thread
==============  =======================================================================================

What a spec means to Slurm, what Slurm's states mean to users, and who may submit as whom, is in `slinky_operator.jobs`.

No job is submitted twice: what is begun is written into the status before Slurm is asked, and a submission whose answer
is not known is looked for by its mark before another is made.
"""
