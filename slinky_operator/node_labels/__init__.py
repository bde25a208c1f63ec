"""Labels and extended resources on Kubernetes Nodes that say which Slurm hardware they have: no daemon on the Nodes.

==============  ========================================================================================
module          concern
==============  ========================================================================================
`config_map`    the administrator's ConfigMap: watched, and read once for all Nodes
`config_format` its text, which is that of sylabs' resource-daemon, to what each Node is to have. Pure
`slurm_nodes`   the records in Slurm of the slurmd pods on a Node, from caches
`slurm_labels`  from these to labels. Pure
`model`         what is wanted of a Node, what it has, and the record of what the operator has written. Pure
`plan`          from these to one patch, and what is somebody else's. Pure
`controller`    one pass over a Node
`triggers`      a Node that changes, the ConfigMap, which concerns all, pods, and nodes in Slurm
`spec`          what the process needs to run it; it is off unless a ConfigMap is named
==============  ========================================================================================

Only names of one prefix (`labels.KUBERNETES_NODE_PREFIX`) are read or written. What the operator has written is
recorded in an annotation of the Node, in the same patch: a label of the prefix that is not recorded is somebody else's,
and is neither changed nor removed. A source that cannot be read removes nothing.

Names, values and rules of pods that use the labels are left to Kubernetes; what slurmd tells Slurm about a Node is left
to `slinky_operator.nodeset`.
"""
