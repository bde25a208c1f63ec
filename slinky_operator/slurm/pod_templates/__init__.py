"""Pod templates: what users may set in those of NodeSets and daemons, how they are merged, and what pods are granted.

No Slurm rule and no call: functions from bodies to bodies or to reasons.

====================  =======================================================================================
module                concern
====================  =======================================================================================
`templates`           a user's template merged over the generated one, like a strategic merge patch
`shapes`              bodies compared with the API server's own types
`template_rules`      a daemon's template merged, except for what finds and identifies the daemon
`security`            security contexts of pods that run Slurm daemons
`first_process`       the shell above slurmd, which reaps its steps
`controller_process`  the shell above slurmctld, which ends one that waits for itself
`confinement`         what a slurmd pod is granted so that its jobs are confined by cgroups
`ssh_server`          sshd beside such a slurmd, for users with a running job
====================  =======================================================================================
"""
