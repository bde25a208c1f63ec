"""What concerns whole Kubernetes Nodes, with all slurmd pods there, whichever NodeSet they are of.

================ =============================================================================================
module           concern
================ =============================================================================================
`drain_requests` lists NVSentinel's requests to drain beside the passes, and says when they are complete
`machines`       has machines of bad Nodes rebooted or deleted: the part of `executor` that concerns whole Nodes
`proof`          proves that a Kubernetes Node holds no job, for all slurmd pods there
`requests`       what has been asked for about a machine, and whether it may still happen
`slurms`         which Slurms concern a Kubernetes Node
================ =============================================================================================
"""
