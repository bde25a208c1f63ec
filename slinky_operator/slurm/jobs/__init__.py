"""Jobs as controllers read them: the list of all jobs, how often it may be asked for, and what it shows.

=================  =====================================================================
module             concern
=================  =====================================================================
`job_list`         the jobs of one Cluster, requested as rarely as planning allows
`query_budget`     how much of the time queries for jobs may take
`job_facts`        when jobs end by their time limits, and why others wait
`job_log_servers`  where the job log server of a node is reached
`prolog_flags`     whether Slurm makes a step of each job into which sessions can be put
=================  =====================================================================

Jobs that the operator submits are in `slinky_operator.jobs`.
"""
