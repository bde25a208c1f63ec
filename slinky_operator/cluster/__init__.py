"""The Cluster controller: runs slurmctld and slurmrestd, or connects to external ones, and maintains slurm.conf.

A pass goes `observe` -> `plan` -> `execute`, and then the status is written, all called by `controller`.

============  ===========================================================================================
room          concern
============  ===========================================================================================
(here)        one pass, what triggers it, what is kept between two, and the connection to Slurm
`steps`       the steps of the plan, each a function from what is known so far to actions
`components`  the daemons, each behind one protocol: their manifests, and why they do not start
`keys`        the signing keys: where they are, how they are generated, rotated, guarded and loaded
`in_use`      what a change of the configuration would end
`preflight`   disposable daemons that try a configuration, or a new slurmctld pod, first
`config`      the rollout of the wanted configuration
`execute`     carries out a plan; no rules
`report`      status, conditions, status text and Events
============  ===========================================================================================
"""
