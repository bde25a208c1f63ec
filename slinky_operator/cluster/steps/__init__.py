"""The steps of a plan, by subject: pure functions from what is known so far to actions.

===============  =============================================================================================
module           concern
===============  =============================================================================================
`claims`         claims that StatefulSets have made: which settings of `persistence` can still be carried out
`configuration`  the configuration: its rollout, and what is reported on NodeSets
`daemons`        daemons and what slurmd pods share: images, the replacement of slurmctld's pod, objects
`keys`           signing keys: who owns them, which the daemons have, and how slurmctld gets a changed one
`progress`       the state of one pass of the plan: the snapshot, and the findings of its steps for later ones
`site`           what a site has around Slurm's daemons: accounts and users, metrics, machines outside
`slurm`          Slurm itself: the connection to it, and how often its jobs are counted
`teardown`       the deletion of a Cluster: what it waits for, and what is deleted then
`writes`         which objects are written: those that differ
===============  =============================================================================================
"""
