"""Slurm places pods of Kubernetes: Kubernetes Nodes are nodes of Slurm, and pods are jobs without a script.

================  ====================================================================================
module            concern
================  ====================================================================================
`clusters`        which Clusters have a bridge, and may. Pure
`features`        what labels of Kubernetes Nodes are called in Slurm, and whose a node of Slurm is. Pure
`devices`         devices of Kubernetes Nodes in the order in which Slurm numbers them. Pure
`device_claims`   which devices ResourceClaims have, and whose claims they are. Pure
`caches`          caches of pods and devices, which both rooms read
`nodes`           keeps a node of Slurm for each chosen Kubernetes Node
`pods`            the pods: grouped, submitted as SlurmJobs, placed where these run, and ended
================  ====================================================================================

The jobs are SlurmJobs with `spec.external`: their controller submits, watches and cancels them.
"""
