"""What is done next in each stage of a SlurmJob's life. `plan` says in which stage it is.

===================  ==================================================================================
module               concern
===================  ==================================================================================
`obstacles`          why Slurm cannot be asked, and how soon it is looked again
`submission`         nothing has been submitted yet, or another submission is due: what forbids it
`submitted`          Slurm has taken the job: it is followed until its end is seen, or is beyond seeing
`unanswered`         a submission was begun, and its answer is not known: the job is looked for
`late_calls`         how long such a submission may still arrive, and second jobs that it leads to
`attempts`           submissions that follow one that has failed
`lost`               jobs without a script that slurmctld has lost: their nodes are asked for again
`holds_and_cancels`  which hold, release or end of the job is due
`cancellation`       what the annotation, or the end of the work of a job without a script, asks for
`external`           jobs without a script: what they were given, and how their work has ended
`removal`            the job has ended, or its object goes: what is done first
===================  ==================================================================================
"""
