"""The Cluster controller: runs slurmctld and slurmrestd, or connects to external ones, and maintains slurm.conf.

A pass goes `observe` -> `plan` -> `execute`, and then the status is written, all called by `controller`.

==================  =====================================================================================
room                concern
==================  =====================================================================================
`spec`              what the controller exports to the process: its caches, and how it is built
`triggers`          which Clusters an event is about
`controller`        one pass
`observe`           the frozen snapshot that a pass plans from
`plan`              from the snapshot to actions, status and the next time to look
`actions`           the actions of a plan, as data
`memory`            what is kept between two passes and is in no cache
`consent`           whether a Secret may be used for a Slurm elsewhere
`slurm_connection`  the settings of the connection to Slurm, and why there is none
`replicas`          the slurmrestds that the operator calls
`succession`        what deleted Clusters have left, and who owns it now
`steps`             the steps of the plan, each a function from what is known so far to actions
`components`        the daemons, each behind one protocol: their manifests, and why they do not start
`keys`              the signing keys: where they are, how they are generated, rotated, guarded and loaded
`accounting`        which daemons accounting needs, the Secrets they mount, and what slurm.conf says
`accounts`          what `spec.accounting.tree` wants in slurmdbd, and how it gets there
`upgrade`           in which order daemons get other images, and which steps are refused
`trials`            disposable pods that try something before a running daemon reads it
`in_use`            what a change of the configuration would end
`preflight`         disposable daemons that try a configuration, or a new slurmctld pod, first
`config`            the rollout of the wanted configuration
`execute`           carries out a plan; no rules
`report`            status, conditions, status text and Events
==================  =====================================================================================
"""
