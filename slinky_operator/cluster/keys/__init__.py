"""The keys of a Cluster: where they are, how they are generated, rotated, guarded and loaded.

==============  ================================================================================
module          concern
==============  ================================================================================
`lifecycle`     which keys daemons run with, and what to do if a Secret differs
`stored_keys`   where they are kept
`staged_keys`   from where pods mount a key set or a key of the user's, once it is accepted
`key_form`      whether daemons have a key set or a single key
`key_sets`      what is in a `slurm.jwks`, and whether it may replace another
`key_holders`   which daemons must have it, and how each is asked
`key_steps`     which of them have proven to have it, and when the next one may follow
`key_guard`     no daemon reads a key of auth/slurm that others lack
`key_loading`   a changed secret of auth/jwt is loaded into slurmctld
`signing`       the private key of tokens: added, switched to, dropped
`key_messages`  messages for people
`key_sizes`     whether daemons can use a key of the user's: its size, and the form of a key set
`question_key`  the key of auth/slurm that questions to slurmds are signed with
==============  ================================================================================
"""
