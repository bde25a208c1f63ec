"""What commands have in common.

=========  ===============================================================
`options`  options that all commands share
`files`    files that the user names
`session`  what a command asks with: Kubernetes, a Cluster, its slurmrestd
`pods`     pods that commands look for by what Slurm calls them
=========  ===============================================================
"""
