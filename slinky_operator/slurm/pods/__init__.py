"""Pods that run Slurm, as they are found: whose they are, what they ended with, and how much room their volumes have.

===============  ================================================================================
module           concern
===============  ================================================================================
`pod_ownership`  what a pod is, whatever labels it has
`exit_messages`  messages of daemons, kubelets and schedulers, shortened
`volume_room`    how much room of a volume is little, full, or enough again, and the words for it
===============  ================================================================================

What users may set in such pods is in `slinky_operator.slurm.pod_templates`. What a full volume means, and whom to
warn, is left to the controllers. The programs that look at volumes are `slinky_operator.pod_programs.agent` beside
slurmctld and MariaDB, and `pod_programs.joblogs` beside slurmd (`slinky_operator.slurm.connection.volume_query`).
"""
