"""The NodeSet controller: a set of slurmd pods, none of which is deleted while it may hold a job.

A pass goes `observe` -> `plan` -> `execute` -> `report`; `controller` strings them together. All rules are pure, and
what executes has none of its own.

=============  ==========================================================================================
room           concern
=============  ==========================================================================================
(here)         one pass, what triggers it, and what is kept between two
`model`        facts read from objects once and frozen; the actions a plan may ask for
`slurm_nodes`  a Slurm node's record: whose it is, whose its drain is, what may be done with it
`pod_spec`     the slurmd pod: what is generated, what a template may say, how slurmd is started
`placement`    how many pods, on which Kubernetes Nodes, under which names, with which claims
`disruption`   what makes a node unavailable, and in which order pods go
`drain`        why a node is drained, and the steps from the drain to the deletion of its pod
`execute`      carries out a plan: each write is checked again right before it
`report`       status, conditions, status text and Events
=============  ==========================================================================================

The Cluster controller is not imported; what the two tell each other stands in API fields.
"""
