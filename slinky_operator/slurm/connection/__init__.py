"""Connections to the slurmrestd of each Cluster, and questions to its daemons and pods.

=================  =================================================================================
module             concern
=================  =================================================================================
`clients`          the map: one `cluster_client` per Cluster
`cluster_client`   one Cluster's client, with its node cache
`contact`          whether Slurm answers, and since when
`key_proof`        whether one daemon has a key of auth/slurm
`overrides`        where slurmrestd is asked from a developer's machine
`replicas`         which of several slurmrestds a call goes to
`signed_messages`  messages of Slurm's protocol that are signed with a key of auth/slurm
`slurmd_status`    which jobs have a step on a node, as its slurmd shows
`fencing`          no Slurm write after leadership may have been lost
`job_output`       files of jobs, read from the job log servers beside slurmd
`pod_reader`       answers that are read by HTTP from other pods of a Cluster
`volume_query`     how much room the volumes of a pod have, as the program beside its daemon answers
=================  =================================================================================
"""
