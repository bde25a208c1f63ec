"""Slurm places pods of Kubernetes: Kubernetes Nodes are nodes of Slurm, and pods are jobs without a script.

================  ====================================================================================
module            concern
================  ====================================================================================
`features`        what labels of Kubernetes Nodes are called in Slurm, and whose a node of Slurm is. Pure
`gres`            which extended resources are which generic resources of Slurm. Pure
`pods`            the pods: grouped, submitted as SlurmJobs, placed where these run, and ended
================  ====================================================================================

The jobs are SlurmJobs with `spec.external`: their controller submits, watches and cancels them.
"""
