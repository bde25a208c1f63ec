"""The keys of slurm.conf: which of them users may set, and what a change of each does to daemons and jobs.

=========  ============================================================================
module     concern
=========  ============================================================================
`merge`    the operator's keys and the user's `extraConf`, each key once
`reach`    changes of lines that no slurmd acts on
`restart`  keys that slurmctld applies at a start only
`rules`    what a change of each key does to jobs: data, of which the documentation is made
=========  ============================================================================
"""
