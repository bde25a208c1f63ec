"""What the controllers know of Slurm: names of a Cluster's objects, connections, configuration files, pod templates.

Nothing here decides; the controllers do. The package imports the Kubernetes facade and the runtime, never a controller.

===============  =====================================================================
module           concern
===============  =====================================================================
`naming`         names, ports, paths and users of everything that belongs to a Cluster
`connection`     one client per Cluster, with its node cache and the state of contact
`fencing`        no Slurm write after leadership may have been lost
`conf`           slurm.conf and its family, rendered and checked
`accounting`     slurmdbd.conf and the database's
`pod_templates`  what users may set in pod templates, merged and compared
===============  =====================================================================
"""
