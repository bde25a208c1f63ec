"""What each value and field of Slinky's charts becomes, as tables: a row for each key.

=========== ==========================================================================
module      concern
=========== ==========================================================================
`slurm`     the values of the chart `slurm`
`operator`  the values of the chart `slurm-operator`
`kinds`     the fields of rendered objects
`daemons`   what daemons have in common: pods, containers, Services, claims
=========== ==========================================================================
"""
