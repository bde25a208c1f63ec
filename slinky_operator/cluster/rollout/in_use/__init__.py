"""What a change of the configuration would end: jobs on partitions, nodes, GRES and under parameters.

==============  ===============================================================================
module          concern
==============  ===============================================================================
`answer`        Slurm's answer about jobs and reservations: whether it is still valid
`licenses`      licenses that jobs have asked for
`names`         names of nodes and features in what jobs ask for
`parameters`    keys of slurm.conf that stay until jobs have ended
`removals`      what a change would end, and what therefore stays for now
`static_nodes`  nodes outside Kubernetes that jobs need
==============  ===============================================================================
"""
