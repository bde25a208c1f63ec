"""Virtual Nodes: one for each partition, kept like what Slurm says of it, and their Leases.

===================  ====================================================================================
module               concern
===================  ====================================================================================
`model`              what a pass knows, and what it decides. Pure
`observation`        makes that knowledge, from caches and the last answer of Slurm
`execute`            carries out the plan, and says what has become of it
`writes`             one write each
`partition_poll`     asks Slurm for partitions, beside the passes
`reachability_poll`  asks the API server whether it reaches the kubelet API, beside the passes
`leases`             renews the Leases, beside everything else
`controller`         one pass over a Cluster
`triggers`           Clusters, Nodes, and nodes in Slurm that change
`spec`               what the process needs to run it; it is off unless the settings name Clusters
===================  ====================================================================================

Conditions of the Cluster are made by its own controller, of `status.virtualNodes`, which only this one writes.
"""
