"""The connection to slurmrestd.

==================  ==========================================================================
module              concern
==================  ==========================================================================
`step`              keeps the connection as the spec, Secrets and keys want it
`slurm_connection`  the settings of the connection, and why there is none
`contact`           whether slurmrestd answers, accepts the token, and reaches slurmctld
`part`              what a Cluster shows of the connection
`replicas`          the slurmrestds that the operator calls
==================  ==========================================================================
"""
