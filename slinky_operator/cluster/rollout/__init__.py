"""From the texts of all parts to a live slurm.conf.

=================  =======================================================================
module             concern
=================  =======================================================================
`plan`             the steps of a rollout, and which is next
`config`           the rollout of the wanted configuration to the running slurmctld
`in_use`           what a change of the configuration would end
`preflight`        disposable daemons try a configuration, or a new slurmctld pod, first
`config_sources`   reads ConfigMaps with parts of the configuration
`agent_questions`  asks the agent beside slurmctld what is mounted, and which names resolve
`slurm_questions`  asks Slurm what is in use, and how partitions are
`reload`           lets slurmctld read its files, and looks whether it has
=================  =======================================================================
"""
