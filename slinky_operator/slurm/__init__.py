"""What the controllers know of Slurm: names of a Cluster's objects, connections, configuration files, pod templates.

Nothing here decides; the controllers do. The package imports the Kubernetes facade and the runtime, never a controller.

===============  =========================================================================================
module           concern
===============  =========================================================================================
`naming`         names, ports, paths and users of everything that belongs to a Cluster
`releases`       releases of Slurm: of an image by its tag, and which step from one to another is possible
`connection`     one client per Cluster, with its nodes, the state of contact, and the fence of writes
`jobs`           lists of jobs: how often they may be asked for, and what they show
`nodes`          features and generic resources of nodes, who names them, words of drains
`conf`           slurm.conf and its family, rendered and checked
`accounting`     slurmdbd.conf and the database's
`slurmd`         what slurmd is started with, read from a NodeSet
`pods`           whose pods are, what they ended with, how much room their volumes have
`pod_templates`  what users may set in pod templates, merged and compared
`health_checks`  the program that runs health checks on nodes, the checks, and what they report
`tokens`         keys of tokens (auth/jwt), the operator's and the public ones
===============  =========================================================================================
"""
