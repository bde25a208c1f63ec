"""What is measured, one module per concern; each declares its families and fills them from a snapshot.

============  ==================================================================
module        concern
============  ==================================================================
`nodes`       nodes by state, their CPUs, memory and GRES; the same by partition
`jobs`        jobs by state, partition, reason, QOS, account and user
`demand`      what pending jobs ask for: the signals of autoscaling
`partitions`  state and limits of partitions
`holdings`    licenses and reservations
`shares`      fair share
`scheduler`   schedulers of slurmctld and its counters of jobs
`calls`       remote procedure calls by type and by user
`services`    slurmctld and slurmdbd: whether they answer
`itself`      the exporter: age of data, success, duration, what was left out
`catalogue`   all families, for the documentation and for who checks names
============  ==================================================================
"""
