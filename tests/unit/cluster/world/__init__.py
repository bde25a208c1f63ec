"""An ideal world in memory: everything that a plan asks for happens at once.

===========  =================================================================================
module       concern
===========  =================================================================================
`objects`    objects: a Cluster and NodeSets for tests, and the pods that a cluster has of them
`state`      what there is, and what the operator sees of it
`answers`    what Slurm, the agents and the API server answer to questions
`effects`    what becomes of an action
`passes`     a world that lives: pass after pass until one has nothing to do
===========  =================================================================================
"""

from tests.unit.cluster.world.objects import WALL, cluster_object, node_set_object
from tests.unit.cluster.world.passes import ENVIRONMENT, World, subject

__all__ = ["ENVIRONMENT", "WALL", "World", "cluster_object", "node_set_object", "subject"]
