"""What is known of a SlurmJob, what is done next, and what is shown: pure, without a clock or a call.

================  ============================================================================
module            concern
================  ============================================================================
`snapshot`        what a pass knows
`slurm_records`   what Slurm's records say of a job, and which of them are those of a SlurmJob
`dependencies`    other SlurmJobs that one waits for, and loops among them
`output_path`     where a job writes whose output is shown, decided before its submission
`job_files`       what must be known of a job to reach its files, kept in the status
`plan`            the next step, and what is to be shown
`stages`          the same in each stage: before a submission, after it, and at the end
`steps`           what a pass may do, and what doing it takes
`requests`        what Slurm is asked for, and what a dry run shows of it
`news`            what a pass shows of the job and of its pods
`report`          the status and conditions that show it
`metric_changes`  what a change of the status adds to metrics
================  ============================================================================
"""
