"""The Token controller: a JWT for one Slurm user, made from a Cluster's key, kept fresh in a Secret.

=============  =========================================================================================
module         concern
=============  =========================================================================================
`observation`  the Cluster, its key, the Secret: from caches, and from the API server by name
`grants`       which user names a Cluster grants to which namespace, and for how long. Pure
`jwts`         makes a JWT, and reads one back
`plan`         from a snapshot to one write of the Secret, the findings, the time of the next pass. Pure
`writes`       carries out that write, and never one to a Secret that is not the Token's
`report`       status, conditions and status text. Pure
`snapshot`     what a pass knows
`controller`   one pass
`triggers`     which Tokens an event is about
`spec`         what the controller exports to the process
=============  =========================================================================================

The key is that of the copy which the Cluster controller keeps of what the daemons run with, so a token is never made
with a key that slurmctld has not read yet. Secrets can be neither listed nor watched: the Token's own and the copy are
read again with each pass, and a pass comes at the latest when the token is due, and every `plan.CHECK_S` otherwise.
"""
