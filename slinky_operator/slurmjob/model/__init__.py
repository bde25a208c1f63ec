"""What is known of a SlurmJob, what is done next, and what is shown: pure, without a clock or a call.

===============  ============================================================================
module           concern
===============  ============================================================================
`slurm_records`  what Slurm's records say of a job, and which of them are those of a SlurmJob
`dependencies`   other SlurmJobs that one waits for, and loops among them
`snapshot`       what a pass knows
`steps`          what a pass may do, and what doing it takes
`news`           what a pass has to show
`plan`           the next step, and what is to be shown
`stages`         the same in each stage: before a submission, after it, and at the end
`late_calls`     submissions whose answer is not known, and second jobs that they lead to
`orders`         which hold, release or end of the job is due
`cancellation`   what an annotation asks for
`requests`       what Slurm is asked for, and what a dry run shows of it
`attempts`       submissions that follow one that has failed
`resubmission`   when a job that Slurm has refused is submitted again
`report`         status and conditions that show it
`figures`        what a change of the status adds to metrics
`pod_reports`    what a pass has found about the pods with output and with files
===============  ============================================================================
"""
