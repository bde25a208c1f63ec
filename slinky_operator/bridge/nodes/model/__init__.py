"""What a pass over a Cluster with a bridge knows, and what it decides. Pure.

==============  =======================================================================================
module          concern
==============  =======================================================================================
`hosts`         what matters of a Kubernetes Node
`sizes`         CPUs, memory and generic resources that Slurm may give away of one
`node_line`     the line by which Slurm makes a node
`wishes`        what the Cluster wants, and why it may not have it
`warnings`      what in Slurm's configuration does not go with pods
`snapshot`      what a pass knows
`plan`          what is made, drained, undrained and deleted
`report`        what the Cluster shows
==============  =======================================================================================
"""
