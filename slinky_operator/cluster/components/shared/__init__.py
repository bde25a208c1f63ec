"""What several daemons share: objects, and rules for parts of them.

==================  =====================================================================================
module              concern
==================  =====================================================================================
`shared_objects`    the ConfigMap with slurm.conf, and what all slurmd pods of a Cluster share
`service_fragment`  a user's Service settings merged over the generated ones
`claims`            claims of daemons
`availability`      spreading of replicas, and budgets for their eviction
==================  =====================================================================================
"""
