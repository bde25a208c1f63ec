"""What a NodeSet shows: status, conditions, status text and Events.

========================  ==============================================================================
module                    concern
========================  ==============================================================================
`checks`                  whether all nodes run the health checks, and what stands in the way
`forgotten`               what Slurm has forgotten: ends of jobs that delay drains, nodes of pods
`health`                  whether the budget of `spec.health` lets all bad nodes be drained
`out_of_service`          nodes that get no jobs although the operator does not drain them: which
`progress`                what a NodeSet is doing: the conditions `Progressing` and `Draining`
`ssh`                     what keeps users from logging in to nodes on which they have jobs
`status`                  the status of a NodeSet: counts under both generations' names
`summary`                 the status text of a NodeSet, as `kubectl get` shows it: troubles
`trouble_events`          which troubles are reported in Events: each when it begins
`topology`                nodes without a place in a topology: which labels their Nodes lack
`troubles`                what prevents a NodeSet from matching its spec: for the condition `Degraded`
`volumes`                 whether the volumes of nodes have room: job output, slurmd's spool
========================  ==============================================================================

Types and reasons of conditions are in `slinky_api.conditions`; `status` lists the conditions, and has the rules of
those without a module of their own, `troubles` what
`Degraded` names, `progress` what `Progressing` and `Draining` name, `summary` the status text.
"""
