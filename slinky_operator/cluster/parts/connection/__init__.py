"""The connection to slurmrestd.

==================  ==========================================================================
module              concern
==================  ==========================================================================
`slurm_connection`  the settings of the connection, and why there is none
`contact`           whether slurmrestd answers, accepts the token, and reaches slurmctld
`part`              what a Cluster shows of the connection
`replicas`          the slurmrestds that the operator calls
==================  ==========================================================================
"""
