"""The Cluster controller: runs slurmctld and slurmrestd, or connects to them elsewhere, and keeps slurm.conf.

A pass goes `observe` -> `plan` -> `execute`, and then the status is written; `controller` strings them together.

============  ===========================================================================================
room          concern
============  ===========================================================================================
(here)        one pass, what triggers it, what is kept between two, and the connection with Slurm
`steps`       the steps of the plan, each a function from what is known so far to actions
`components`  the daemons, each behind one protocol: their manifests, and why they do not come up
`keys`        the signing keys: where they are, how they are made, rotated, guarded and loaded
`in_use`      what a change of the configuration would end
`preflight`   disposable daemons that try a configuration, or another slurmctld, first
`config`      how far the wanted configuration has come
`execute`     carries out a plan; no rules
`report`      status, conditions, status text and Events
============  ===========================================================================================
"""
