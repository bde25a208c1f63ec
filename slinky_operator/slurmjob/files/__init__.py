"""Files of SlurmJobs that are copied between nodes and volumes, by pods of its namespace (`prepare`, `results`).

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`facts`          what must be known of a job after Slurm has forgotten it, kept in the status
`ways`           by which way a file is reached, and the tokens for it
`bodies`         pod and Secret of a list of copies
`pods`           what such a pod says, while it waits and when it has ended
`plan`           what is done next about a list of copies, and what is shown
`upkeep`         reads what the plan needs, and writes what it says
===============  ==========================================================================================

The program in the pods, and the server beside slurmd, are in `slinky_operator.joblogs.copies`.
"""
