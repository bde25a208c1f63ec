"""The rules of virtual Nodes: from what a pass knows to what it writes and shows. Pure.

==================  ===============================================================================
module              concern
==================  ===============================================================================
`partitions`        what a partition has, from the records of Slurm
`partition_config`  the partition configuration of wlm-operator's red-box
`hosts`             which Clusters may have virtual Nodes, and whose a host name is
`wishes`            what a Cluster wants, and what is refused of it
`snapshot`          what a pass knows
`naming`            which partition gets which Node
`node_labels`       labels of a Node
`node_object`       taints, capacity, addresses and conditions of a Node
`written_record`    what the operator has written on a Node, by an annotation
`plan`              from a snapshot to what is written
`outcome`           what has become of a plan, and when the next pass is due
`report`            what the Cluster shows of its Nodes
`partition_status`  what it shows of its partitions
`reachability`      whether the API server reaches the kubelet API, by its answer
==================  ===============================================================================
"""
