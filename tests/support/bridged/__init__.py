"""A modelled Kubernetes beside the operator's own loops of the bridge and a real Slurm.

================  ====================================================================================
module            concern
================  ====================================================================================
`machines`        Kubernetes Nodes, the scheduler and kubelets: who has room where, and who is refused
`api`             an API server in memory that pods, their evictions and their owners need
`site`            a Cluster, its machines in Slurm, and the operator's loops for them
`ledger`          what Slurm has promised, beside what pods have: each core once
`arrivals`        pods, groups and jobs that come one after the other, by a seed
================  ====================================================================================
"""
