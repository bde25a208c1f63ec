"""Rules of groups of pods: from what a pass knows to what it does. All of it is pure.

================  =============================================================================================
module            concern
================  =============================================================================================
`membership`      to which group a pod belongs, and which of its pods it is
`group_owners`    what the object says that holds a group together: how many pods, and whether its work is over
`translation`     what a pod asks for, in the fields of a SlurmJob
`components`      pods that ask for different things, as parts of one job
`snapshot`        what a pass knows
`slurmjobs`       the SlurmJobs of groups: names, owners, and which pod is which task
`lift`            the patch that gives a pod its Node and removes the gate, and the condition of a pod
`devices`         which devices a pod gets of those of its job
`steps`           what is done, and how much of it in a pass
`next_job`        the next job of pods that wait
`placing`         which pod is placed where
`ending`          the end of a job whose pods have ended
`plan`            all of these together
================  =============================================================================================
"""
