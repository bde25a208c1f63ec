"""Kubernetes Nodes as nodes of Slurm that have no slurmd.

================  ====================================================================================
module            concern
================  ====================================================================================
`model`           what a pass knows, and what it decides. Pure
`observation`     makes that knowledge, from the caches of Nodes and of Slurm's nodes
`host_devices`    their devices, and those that pods have which Slurm has not placed
`pod_requests`    reads what pods that Slurm has not placed request on a Node, rarely
`sharing`         which of the Nodes other Clusters choose, too, a few Clusters in a pass
`configuration`   what Slurm says of its configuration and partitions, rarely
`execute`         carries out the plan in Slurm, and says what has become of it
`controller`      one pass over a Cluster
`triggers`        Clusters, Nodes, and nodes in Slurm that change
`spec`            what the process needs to run it; it is off unless the settings name Clusters
================  ====================================================================================

The condition of the Cluster is made by its own controller, of `status.bridge`, which only this one writes. Slurm itself
refuses to delete a node with a job or a reservation (2016); no rule here relies on that alone. None sets a node DOWN:
that ends its jobs, and nobody knows for certain that pods of a machine that is away have ended. Such jobs end by
their time limit, or when their pods are deleted.
"""
