"""What a pass asks.

================  ==============================================================================================
module            concern
================  ==============================================================================================
`pod_queries`     asks slurmds for steps and job log servers for room, several at a time
`registrations`   asks the API server which pods have registered, past the cache
`slurm_queries`   queries Slurm itself, past the cache: few calls for many nodes, and no answer if a call fails
`survey_queries`  asks what a survey needs to know before anything is decided: pods, jobs
================  ==============================================================================================
"""
