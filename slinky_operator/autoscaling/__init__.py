"""Autoscaling: sets the replicas of NodeSets by the pending jobs of their Cluster.

One pass over a Cluster asks once for its jobs and partitions, whatever the number of its NodeSets, counts the nodes
that jobs need (`rules.demand`), decides for each NodeSet (`rules.decision`) and writes. Which pods a lower number
removes, and when, is the NodeSet controller's: idle ones first, busy ones when their jobs have ended.

==============  ====================================================================
module          concern
==============  ====================================================================
`controller`    one pass over a Cluster
`observation`   caches and Slurm's answers to what the rules read
`report`        what each NodeSet shows: reason and message
`rules`         pure: what a job needs, where it fits, how many nodes, what to set
`spec`          what the process is given
`triggers`      what triggers a pass
==============  ====================================================================
"""
