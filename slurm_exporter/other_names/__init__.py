"""Names of other exporters, so that their dashboards and alerts keep working; off by default.

===============  ======================================================================
module           concern
===============  ======================================================================
`tally`          what both sets count: nodes and jobs of the cluster, of partitions, accounts and users
`notation`       a set of names as rows of name, text and value
`slurm_exporter` names of slurm-exporter 0.3
`slurmctld`      names of the endpoint of slurmctld 26.05 (`MetricsType=metrics/openmetrics`)
`catalogue`      the sets by the word that switches them on
===============  ======================================================================

All are gauges, as they are there. Values have the units that the names say, where the originals give MiB as bytes and
microseconds as seconds.
"""
