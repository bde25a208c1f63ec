"""Upgrades of Slurm by other images: in which order daemons get them, and which steps are refused. Pure.

==========  ==================================================================
module      concern
==========  ==================================================================
`asking`    which release an image has, whatever its tag is
`rules`     which release a daemon may get beside those of the others
`order`     slurmdbd, slurmctld, slurmrestd, login: each waits for those before
`part`      what a Cluster shows of an upgrade
==========  ==================================================================

Which release slurmctld runs is known to the trial of its pod (`preflight.running_release`). NodeSets wait for the
Cluster in their own controller (`nodeset.disruption.cluster_upgrade`).
"""
