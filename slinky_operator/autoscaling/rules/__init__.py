"""The rules of autoscaling, without I/O and without a clock.

============  =================================================================
module        concern
============  =================================================================
`decision`    from the nodes wanted now, and since when, to replicas
`demand`      from jobs, nodes and NodeSets to the nodes wanted of each NodeSet
`features`    whether a node has what a job's ``--constraint`` asks for
`needs`       what a pending job needs, or why it is not counted
`packing`     places whole jobs on nodes
============  =================================================================
"""
