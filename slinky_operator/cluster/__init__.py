"""The Cluster controller: runs slurmctld and slurmrestd, or connects to them elsewhere, and keeps slurm.conf.

=============  =============================================================================================
module         concern
=============  =============================================================================================
`controller`   one pass: observe, plan, act, status
`wiring`       what wakes it
`actions`      what a pass can do
`observe`      a frozen snapshot from the caches
`sources`      Secrets, read by name: no cache may list them
`memory`       what a Cluster's Slurm and agent have told, which stands in no cache
`plan`         snapshot and time in; actions, status and wake-up time out; no I/O
`rollout`      the part of it about slurm.conf and the NodeSets
`connection`   the part of it about the connection with Slurm
`children`     when an object of ours has to be written again
`daemons`      what these objects are
`act`          carries out actions; no rules
`status`       conditions and counts
=============  =============================================================================================
"""
