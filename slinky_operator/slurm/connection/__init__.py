"""Connections to the slurmrestd of each Cluster.

================  =======================================================================================
module            concern
================  =======================================================================================
`clients`         the map: one `cluster_client` per Cluster
`cluster_client`  one Cluster's client, with its node cache
`contact`         whether Slurm answers, and since when
`replicas`        which of several slurmrestds a call goes to
================  =======================================================================================
"""
