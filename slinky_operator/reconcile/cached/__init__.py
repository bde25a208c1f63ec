"""Caches of Kubernetes objects: which there are, what they keep and leave out, and what they are searched by.

=============  ===================================================================================
module         concern
=============  ===================================================================================
`caches`       the caches of all controllers, each kind watched once
`bound_pods`   pods that are bound to some Nodes, each Node with a watch of its own
`kept_fields`  which fields of pods and claims the caches keep
`indexes`      what more than one controller looks objects up by, and what caches keep of a Node
`ownership`    which owners an object with the operator's labels may have
`job_nodes`    where a job can run: NodeSets and slurmd pods of a Cluster
`scripts`      long scripts of jobs, which caches leave out and rules read again
`gate`         which passes wait for a cache that does not have all their rules read
=============  ===================================================================================
"""
