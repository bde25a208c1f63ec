"""Health checks on nodes (`spec.health.checks` of a NodeSet): the programs, the files they get, and what they report.

slurmctld gives every slurmd one program, `run-checks.sh`, as its HealthCheckProgram and as a prolog and an epilog.
It runs the checks that a ConfigMap of its NodeSet lists, and writes what they say into the comment of its node: it
drains nothing itself, since only the operator knows the budget. The other scripts here are the checks that come with
the operator. Which nodes run which checks, and what follows from a report, is decided by the NodeSet controller.

==========  ===============================================================
module      concern
==========  ===============================================================
`programs`  the program, its names, and its lines in slurm.conf
`tables`    checks of a spec as the files that the program reads
`reports`   what the program has written into the comment of a node
==========  ===============================================================
"""
