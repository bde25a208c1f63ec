"""Disposable pods that try something before a running daemon reads it.

================  =======================================================================================
module            concern
================  =======================================================================================
`engine`          the life of a disposable pod, the same for each kind of trial
`problems`        what the pod of a trial shows about its end, or about why there is none
`pods`            what every disposable pod has: its kind, name and objects, and its end
`scripts`         lines of a shell that several trials run, and the exit codes by which they end
`preflight_pod`   a slurmctld and its slurmds with a new configuration
`rehearsal_pod`   a pod of the new template of slurmctld's pod, before that one is replaced
`state_pod`       a slurmctld of a new image with a copy of the live state
`jobs_pod`        a slurmctld with a new configuration and a copy of the live state: which jobs would end
`slurmdbd_pod`    a slurmdbd with a new slurmdbd.conf, without a database
`version_pod`     images say which Slurm they have
================  =======================================================================================
"""
