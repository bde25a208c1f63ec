"""The keys of a Cluster: where they are, how they are generated, rotated, guarded and loaded.

==============  ================================================================================
module          concern
==============  ================================================================================
`lifecycle`     which keys daemons run with, and what to do if a Secret differs
`findings`      what a pass has found out about keys, for other parts
`stored_keys`   where they are kept
`staged_keys`   from where pods mount a key set or a key of the user's, once it is accepted
`key_guard`     no daemon reads a key of auth/slurm that others lack
`key_loading`   a changed secret of auth/jwt is loaded into slurmctld
`signing`       the private key of tokens: added, switched to, dropped
`key_messages`  messages for people
`sets`          what is in a `slurm.jwks`: its form, the sizes of keys, and which set may replace which
`proof`         which daemons must have a key set, which have proven it, and how each is asked
`step`          keeps the keys, and lets slurmctld and slurmds read changed ones
`part`          what a Cluster shows of its keys, and which Secrets they are in
`key_trial`     whether slurmctld accepts a key of auth/jwt
`writes`        writes and reads Secrets with keys
`question_key`  the key of auth/slurm that questions to slurmds are signed with
==============  ================================================================================
"""
