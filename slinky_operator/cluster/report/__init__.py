"""What a Cluster shows: status, conditions, status text and Events.

=====================  ======================================================================
module                 concern
=====================  ======================================================================
`status`               the whole status, and the patch that writes it
`conditions`           the list of conditions, from what the steps of a pass have found
`summary`              the text of the column STATUS
`events`               which changes of conditions become Events
`accounting`           whether slurmdbd and its database work
`accounts`             whether slurmdbd has the accounts of the spec
`slurmctld_addresses`  whether the slurmctld that slurmdbd has is the Cluster's own
`directory`            whether SSSD reaches the directory of users
`exporter`             whether the exporter serves metrics
`volumes`              whether volumes have room
`hang`                 whether slurmctld waited for itself and was ended
`not_supported`        fields that have no effect
`job_counts`           nodes and jobs by state
`out_of_service`       nodes that get no jobs, and Slurm's reason
`unopened_files`       jobs that ended with `0:53`, and the files that Slurm could not open
=====================  ======================================================================
"""
