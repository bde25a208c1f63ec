"""What several daemons share: objects, and rules for parts of them.

==================  =====================================================================================
module              concern
==================  =====================================================================================
`shared_objects`    the ConfigMap with slurm.conf, and what all slurmd pods of a Cluster share
`service_fragment`  a user's Service settings merged over the generated ones
`claims`            claims of daemons
`agent_container`   the agent as a container beside a daemon
`volumes`           which volumes the agents look at
`availability`      spreading of replicas, and budgets for their eviction
==================  =====================================================================================
"""
