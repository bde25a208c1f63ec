"""Users of a Cluster, for every daemon that resolves names: below the controllers, which do not import each other.

=============  ============================================================================
module         concern
=============  ============================================================================
`entries`      lines of passwd and group: what is checked, and the files that daemons read
`users`        the checked copy of the user's ConfigMap, and what keeps it from being one
`pod`          volumes, mounts and sidecar that a daemon needs to resolve the users
`homes`        the volume with the home folders
=============  ============================================================================

Who needs what (read in Slurm's sources, measured with 24.11 and 26.05): slurmctld resolves the user of a token and puts
uid, groups and names into the credential of the job. slurmrestd writes and reads names of users. slurmd takes all of it
from the credential: a node needs no source of users, and no change of the source replaces a slurmd pod. Processes of a
job resolve their own user through nss_slurm, which asks the job's slurmstepd.
"""
