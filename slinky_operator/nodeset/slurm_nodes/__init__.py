"""Rules about a Slurm node's record: its owner, the owner of its drain, what may be done with it.

======================  ===================================================================================
module                  concern
======================  ===================================================================================
`drains`                the rules of draining: who owns a drain, and when a node is empty
`identity`              who owns a node: decided by its record, never by its name
`kubernetes_features`   what nodes get from their Kubernetes Node: features and a place in the topology
`recorded_ends`         what slurmdbd has recorded of the ends of jobs on nodes
`records`               what happens to a record when its pod is gone, and when its name may be used again
`registration`          nodes that Slurm has drained because their slurmd registered with too little
`running_steps`         what slurmds have shown, again and again, of the steps on their nodes
`topology`              the place of a node in Slurm's topologies, by labels of its Kubernetes Node
======================  ===================================================================================
"""
