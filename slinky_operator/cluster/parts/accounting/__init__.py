"""Accounting: slurmdbd and its database.

=====================  =====================================================================================
module                 concern
=====================  =====================================================================================
`variants`             which daemons accounting needs
`stored`               the Secrets they mount
`in_conf`              what slurm.conf says of it
`mariadb`              the MariaDB that the operator runs
`slurmdbd`             slurmdbd: its configuration and its objects
`slurmdbd_conf`        whether a disposable slurmdbd accepts slurmdbd.conf before the running one does
`question`             asks slurmdbd which slurmctld it knows
`condition`            whether slurmdbd and its database work
`part`                 what a Cluster shows of accounting, and which Secrets that reads
`slurmctld_addresses`  whether the slurmctld that slurmdbd has is the Cluster's own
`known_users`          users of the accounts whom the Cluster does not know
=====================  =====================================================================================
"""
