"""The keys of slurm.conf: which of them users may set, and what a change of each does to daemons and jobs.

=========  ============================================================================
module     concern
=========  ============================================================================
`merge`    the operator's keys and the user's `extraConf`, each key once
`daemons`  which daemons a change concerns: keys that need a restart, lines that no slurmd acts on
`rules`    what a change of each key does to jobs: data, of which the documentation is made
=========  ============================================================================
"""
