"""What Slurm's records say of a job, and which of them are those of a SlurmJob. What follows from it is left to `plan`.

=============  ==========================================================================
module         concern
=============  ==========================================================================
`marks`        the mark of a job, and which of the jobs with a mark was submitted for an object
`records`      Slurm's records of one job, or of the tasks of an array, as one
`arrays`       arrays of which slurmctld does not list all tasks any more
`components`   the components of a heterogeneous job as one
`returned`     jobs that slurmctld shows as waiting or running although they had ended
`reading`      reads records, in a thread where they are many or long
`allocations`  what a job without a script was given
=============  ==========================================================================
"""
