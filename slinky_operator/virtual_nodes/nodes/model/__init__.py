"""The rules of virtual Nodes: from what a pass knows to what it writes and shows. Pure.

==================  ===============================================================================
module              concern
==================  ===============================================================================
`partitions`        what a partition has, from the records of Slurm
`partition_config`  the partition configuration of wlm-operator's red-box
`wishes`            what a Cluster wants and may have, whose a host name is, and what is refused
`snapshot`          what a pass knows
`naming`            which partition gets which Node
`node_labels`       labels of a Node
`node_object`       taints, capacity, addresses and conditions of a Node, and the record of what was written
`plan`              from a snapshot to what is written
`outcome`           what has become of a plan, and when the next pass is due
`report`            what the Cluster shows of its Nodes
`partition_status`  what it shows of its partitions
`reachability`      whether the API server reaches the kubelet API, by its answer
==================  ===============================================================================
"""
