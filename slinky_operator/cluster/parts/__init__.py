"""The parts of a Cluster, a folder each: what it makes, what it asks the world, what it shows.

===================  ==================================================================================
part                 concern
===================  ==================================================================================
`accounting`         slurmdbd and its database
`accounts`           the accounts, users and limits of `spec.accounting.tree` in slurmdbd
`claims`             claims that StatefulSets have made: which settings of `persistence` can be carried out
`configuration`      the rollout of slurm.conf, and what is reported on NodeSets
`connection`         the connection to slurmrestd
`daemons`            the list of daemons, and queries over all of them
`deletion`           the finalizer of a Cluster, and its teardown
`exporter`           the exporter of metrics
`external_nodes`     what an administrator needs for slurmds outside Kubernetes
`identity`           the users whom daemons resolve, and their directory
`job_counts`         jobs by state, and jobs that failed because Slurm could not open a file
`job_logs_key`       the key of the job log servers
`keys`               the keys of auth/slurm and auth/jwt
`login_sets`         the LoginSets of `spec.login`
`maintenance`        maintenance windows, and their reservations in Slurm
`monitoring`         how Prometheus finds metrics
`nodes`              Slurm's nodes: how many, and which get no jobs
`slurmctld`          slurmctld: its objects, and why it hung
`slurmrestd`         slurmrestd: its objects
`upgrade`            in which order daemons get other images, and which steps are refused
`bridge`             what the controller of the bridge's nodes has decided
`virtual_nodes`      what the controller of virtual Nodes has decided
`volumes`            whether volumes have room
`workloads`          writes the objects of all daemons, and deletes those that are not wanted
===================  ==================================================================================

In a part, `part` has what it answers for (`cluster.part`), `step` its steps of a plan, `condition` the rules of its
condition, `question` what it asks, `writes` how it writes what needs more than an ordinary write, and `manifests` its
objects. What a step finds out is a frozen type of its part, noted in the state of the pass (`pass_state`). A part may
import manifests, questions, findings and plain rules of others, never their steps.
"""
