"""Nodes of Slurm as controllers read them: features, generic resources, who names them, and why they are drained.

=================  =================================================================
module             concern
=================  =================================================================
`node_features`    features that a NodeSet's nodes register with
`node_references`  which jobs and reservations name a node
`reference_query`  which jobs and reservations name a node, as Slurm says now
`drain_reasons`    words by which the operator knows its own drains
`gres_amounts`     generic resources of a node as amounts
`bridge_gres`      generic resources that extended resources of Kubernetes Nodes are
=================  =================================================================

What slurmd is started with is in `slinky_operator.slurm.slurmd`, lines of slurm.conf in `slinky_operator.slurm.conf`.
"""
