"""Why a node is drained, the steps of a drain, and what the pod shows of it.

`drain_causes` decides which `Cause` applies to which pod; the causes themselves, and which of them end in a deletion or
have a deadline, are listed in `slurm_nodes.drains`, since they are part of the reason that Slurm shows.
"""
