"""Carries out a plan: writes to Kubernetes and to Slurm, each checked again right before it.

================ =============================================================================================
module           concern
================ =============================================================================================
`check_tables`   reads and writes the ConfigMap with health checks
`context`        what a pass acts with, and the outcome of its plan
`create_pods`    creates pods with their claims: a part of `executor`
`delete_pods`    deletes pods and allows their eviction: the part of `executor` that may end what runs in them
`end_jobs`       ends the jobs that delay a drain for longer than the spec allows: cancels or requeues them
`executor`       carries out a plan: in order, concurrently where that is safe, and without a rule of its own
`finalizer`      keeps a NodeSet until its pods are gone: finalizer and guard
`hosts`          what concerns whole Kubernetes Nodes: requests to drain, machines, the proof that no job is there
`owned_objects`  records revisions; creates, annotates and deletes claims
`patch_pods`     patches pods: that Slurm knows their nodes, whether they may be evicted
`queries`        asks Slurm and the API server past the caches, slurmds, and job log servers
`slurm_writes`   writes to slurmctld what a plan wants: drains, features, records; a part of `executor`
================ =============================================================================================
"""
