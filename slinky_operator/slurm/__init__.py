"""What the controllers know of Slurm: names of a Cluster's objects, connections, configuration files, pod templates.

Nothing here decides; the controllers do. The package imports the Kubernetes facade and the runtime, never a controller.

=================  =====================================================================
module             concern
=================  =====================================================================
`naming`           names, ports, paths and users of everything that belongs to a Cluster
`pod_ownership`    what a pod is, whatever labels it has
`connection`       one client per Cluster, with its nodes, the state of contact, and the fence of writes
`jobs`             the jobs of one Cluster, requested as rarely as planning allows
`job_log_servers`  where the job log server of a node is reached
`node_references`  which jobs and reservations name a node
`prolog_flags`     whether Slurm makes a step of each job into which sessions can be put
`drain_reasons`    words by which the operator knows its own drains
`tokens`           keys of tokens (auth/jwt), the operator's and the public ones
`conf`             slurm.conf and its family, rendered and checked
`accounting`       slurmdbd.conf and the database's
`slurmd`           what slurmd is started with, read from a NodeSet
`node_features`    features that a NodeSet's nodes register with
`bridge_gres`      generic resources that extended resources of Kubernetes Nodes are
`gres_amounts`     generic resources of a node as amounts
`pod_templates`    what users may set in pod templates, merged and compared
`releases`         releases of Slurm: of an image by its tag, and which step from one to another is possible
`home_folders`     the program that makes home folders (`make-home.sh`)
`health_checks`    the program that runs health checks on nodes, the checks, and what they report
`job_facts`        when jobs end by their time limits, and why others wait
`volumes`          how much room volumes have, and when that is little
`exit_messages`    messages of daemons, kubelets and schedulers, shortened
=================  =====================================================================
"""
