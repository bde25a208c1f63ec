"""The SlurmJob controller: batch jobs as objects.

================  =====================================================================================
module            concern
================  =====================================================================================
`model`           what is known of a SlurmJob, what is done next, and what is shown: pure rules
`controller`      one pass: observe, plan, carry out, report
`observation`     builds the snapshot from caches
`polling`         how the jobs of a Cluster are seen: polled once for all SlurmJobs in it, found, looked at while young
`ended_jobs`      cancels jobs that had ended and that slurmctld runs again after a crash
`rescheduling`    lets slurmctld look through its queue when a job without a script has ended
`translations`    translates each version of a SlurmJob once for each user, in a thread
`execute`         carries out a step: submission, dry run, holds and cancellations, questions to slurmdbd, status
`pods`            the pods of a SlurmJob: the one with its output, and those that copy its files
`triggers`        what wakes a SlurmJob
`spec`            what the controller exports to the process
================  =====================================================================================

`slinky_operator.jobs` has what a spec means to Slurm, what Slurm's states mean to users, and who may submit as whom.

No job is submitted twice: the status records each submission before Slurm is asked, and a submission whose answer is
not known is looked for by its mark before another is made.

A new option of a job goes through `slinky_api.v1alpha1.slurmjob` (field), `slinky_operator.jobs.translation` (its
meaning to Slurm; without a field, `slinky_operator.jobs.parameters`) and docs/jobs.md. A new step of a pass goes
through `model.steps`, `model.stages` and `execute`.
"""
