"""The NodeSet controller: a set of slurmd pods, none of which is deleted while it may hold a job.

A pass goes `observation` -> `planning` -> `execute` -> `report`, called by `controller`. All rules are pure, and
the executor has none of its own.

================  ===========================================================================================
room              concern
================  ===========================================================================================
`observation`     from caches to a frozen snapshot
`planning`        from a snapshot to a plan: decisions, actions in order, findings, the time of the next pass
`model`           facts read from objects once and frozen; the actions a plan may ask for
`slurm_nodes`     a Slurm node's record: its owner, the owner of its drain, what may be done with it
`pod_spec`        the slurmd pod: what is generated, what a template may set, how slurmd is started
`placement`       how many pods, on which Kubernetes Nodes, with which names and claims
`disruption`      what makes a node unavailable, and the order in which pods are deleted
`drain`           why a node is drained, and the steps from the drain to the deletion of its pod
`health`          which nodes are drained since their Kubernetes Node is bad, within a budget
`execute`         carries out a plan: each write is checked again right before it is sent
`report`          status, conditions, status text and Events
`spec`            what the controller exports to the process
`controller`      one pass
`triggers`        which NodeSets an event is about
`memory`          what is kept between two passes
`ports`           what is used of a Cluster's Slurm
`reserved_names`  names of Slurm nodes that a NodeSet is about to use
================  ===========================================================================================

The Cluster controller is not imported; the two communicate through API fields.
"""
