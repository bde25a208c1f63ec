"""Carries out the plan of a SlurmJob: asks Slurm, and writes the status and Events of the object.

===================  =====================================================================================
module               concern
===================  =====================================================================================
`submission`         submits a job, with what comes before it and after: volumes, files, Slurm's answer
`resubmission`       when a job that Slurm has refused is submitted again
`holds_and_cancels`  holds, releases and cancels jobs
`external`           asks what a job without a script was given, and tells accounting how its work has ended
`history`            asks slurmdbd about jobs that slurmctld does not list
`slurm_calls`        the calls to Slurm, and which of their errors are refusals
`slurm_access`       the connection to a Cluster's Slurm, and the key of users' tokens
`reports`            writes the status, and Events of what has changed in it
`memory`             what is remembered of a SlurmJob between passes
===================  =====================================================================================
"""
