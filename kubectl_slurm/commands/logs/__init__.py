"""``kubectl slurm logs``.

============  ========================================================
`command`     the command: logs of daemons, and of a job by what it is
`job_output`  the output of a job
============  ========================================================
"""
