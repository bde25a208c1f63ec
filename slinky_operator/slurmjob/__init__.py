"""The SlurmJob controller: batch jobs as objects.

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`marks`          what a job in Slurm carries, by which it is known as that of an object
`dependencies`   other SlurmJobs that one waits for, and loops among them
`records`        Slurm's records of one job, or of the tasks of an array, as one
`own_records`    of the jobs with the mark of an object, its own
`snapshot`       what a pass knows
`steps`          what a pass may do
`plan`           the next step, and what is to be shown
`orders`         which hold, release or end of the job is due
`cancellation`   what an annotation asks for
`requests`       what Slurm is asked for, and what a dry run shows of it
`attempts`       submissions that follow one that has failed
`report`         status and conditions
`figures`        what a change of the status adds to metrics
`queues`         one poll of the jobs of each Cluster, for all SlurmJobs in it
`observation`    from caches to the snapshot
`controller`     one pass
`execute`        what a step does: submission, dry run, orders, questions to slurmdbd, status and Events
`memory`         what is remembered until the next one
`ports`          what it needs of the API server
`triggers`       what wakes a SlurmJob
`logs`           the pod that shows a job's output
`files`          the pods that copy a job's files
`spec`           what the controller exports to the process
===============  ==========================================================================================

What a spec means to Slurm, what Slurm's states mean to users, and who may submit as whom, is in `slinky_operator.jobs`.

No job is submitted twice: what is begun is written into the status before Slurm is asked, and a submission whose answer
is not known is looked for by its mark before another is made.
"""
