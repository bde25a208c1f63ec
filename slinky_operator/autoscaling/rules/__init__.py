"""The rules of autoscaling, without I/O and without a clock.

============  =================================================================
module        concern
============  =================================================================
`decision`    from the nodes wanted now, and since when, to replicas
`demand`      from jobs, nodes and NodeSets to the nodes wanted of each NodeSet
`reading`     from pending jobs to what is placed, in order
`needs`       what a pending job needs, or why it is not counted
`features`    whether a node has what a job's ``--constraint`` asks for
`packing`     places whole jobs on nodes
`trial`       one job while its nodes are looked for
`rooms`       the nodes of a partition, and which have room
`emptied`     whether a job could ever run
`effort`      what a count may cost
`view`        what a count looks at, and what it finds
============  =================================================================
"""
