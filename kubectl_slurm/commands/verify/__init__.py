"""``kubectl slurm verify``: a conformance run.

============  ================================================================================
`command`     the command: checks of Slurm, and jobs
`kubernetes`  checks beside jobs: users in all daemons, cordons, drains that pods show, tokens
============  ================================================================================
"""
