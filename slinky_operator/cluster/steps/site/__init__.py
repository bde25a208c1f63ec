"""Steps about what a site has around Slurm's daemons: accounts and users, metrics, machines outside, output of jobs.

============  ===============================================================================================
module        concern
============  ===============================================================================================
`accounting`  accounting: the Secrets that its daemons mount, once slurmdbd.conf is tried, and its answers
`accounts`    accounts: when slurmdbd is compared with `spec.accounting.tree`
`exporter`    the exporter: its objects while the spec asks for it, and none otherwise
`identity`    users: the checked copy of passwd and group, what is wrong with their source, and the directory
`job_logs`    the key of tokens for output of jobs, which servers beside slurmd check (`jobLogs` of NodeSets)
`monitoring`  ServiceMonitors
`outside`     slurmds outside Kubernetes: what their administrator needs
`volumes`     volumes: ask the agents how much room they have
============  ===============================================================================================
"""
