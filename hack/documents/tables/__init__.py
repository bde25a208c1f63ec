"""Tables that programs write, into the documentation and into the operator.

==================  ===============================================
`key_rules`         the documented table of keys of slurm.conf
`limits`            the documented tables of the operator's limits
`metrics`           the documented tables of the exporter's metrics
`operator_metrics`  the documented table of the operator's metrics
`merge_keys`        what pod templates are merged and checked by
==================  ===============================================
"""
