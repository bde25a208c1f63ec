"""Job kinds of sylabs' operators: one controller for all of them, which runs SlurmJobs.

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`translation`    what a manifest of sylabs' asks for, in the fields of a SlurmJob
`kinds`          the three kinds, and the name of the SlurmJob that stands for an object
`clusters`       which Cluster runs the jobs of a namespace, and what its administrator has said of labels and images
`partitions`     which partitions labels of a node selector stand for, where Slurm has to be asked
`snapshot`       what a pass knows
`plan`           the SlurmJob to create, and the old status to show
`observation`    from caches to the snapshot
`controller`     one pass
`triggers`       what wakes an object
`spec`           what the controllers export to the process
===============  ==========================================================================================

An object becomes a SlurmJob that it owns. What submits, cancels and watches the job is `slinky_operator.slurmjob`; what
the old fields mean, and what the old status says, is in `translation`.

No object gets a second job: one that has had a number in Slurm is never made a SlurmJob of again.
"""
