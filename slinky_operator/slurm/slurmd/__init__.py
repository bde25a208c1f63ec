"""What slurmd is started with, read from a NodeSet: nothing here builds a pod or asks Slurm.

============  =======================================================================================
module        concern
============  =======================================================================================
`launch`      how the template's container starts slurmd, and the user's own arguments
`node_conf`   the keys of the node's line (`--conf`)
`resources`   what slurmd's container may use, from the spec and the template
============  =======================================================================================

Pods are built from it (`slinky_operator.nodeset.pod_spec`), and lines of slurm.conf for nodes that do not exist yet
(`slinky_operator.slurm.conf.future_nodes`).
"""
