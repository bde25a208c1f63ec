"""Names of other exporters, so that their dashboards and alerts keep working; off by default.

======================  ===============================================================
module                  concern
======================  ===============================================================
`tally`                 what the sets count: nodes and jobs of the cluster, of partitions, accounts and users
`notation`              a set of names as rows of name, text and value
`early_slurm_exporter`  names of slurm-exporter 0.1 and 0.2
`slurm_exporter`        names of slurm-exporter 0.3
`slurmctld`             names of the endpoint of slurmctld 26.05 (`MetricsType=metrics/openmetrics`)
`vpenso`                names of vpenso's prometheus-slurm-exporter
`rivosinc`              names of rivosinc's prometheus-slurm-exporter
`catalogue`             the sets by the word that switches them on, and which cannot be served together
======================  ===============================================================

All are gauges. Values have the units that the names say, where the originals give MiB as bytes and microseconds as
seconds.
"""
