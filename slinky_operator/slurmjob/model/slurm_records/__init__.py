"""What Slurm's records say of a job, and which of them are those of a SlurmJob. What follows from it is left to `plan`.

=============  ==============================================================================
module         concern
=============  ==============================================================================
`marks`        what a job in Slurm carries, by which it is known as that of an object
`own_records`  of the jobs with the mark of an object, the one that was submitted for it
`records`      Slurm's records of one job, or of the tasks of an array, as one
`arrays`       arrays of which slurmctld does not list all tasks any more
`reading`      reads records, in a thread where they are many or long
=============  ==============================================================================
"""
