"""Keys of tokens (auth/jwt): those that the operator signs with, and the public ones by which Slurm checks them.

==============  ==============================================================================
module          concern
==============  ==============================================================================
`signing_keys`  keys that sign: one that slurmctld has too (HS256), or a private one (RS256)
`key_set`       the public keys in Slurm's ``jwks=`` file: read from users, written for daemons
==============  ==============================================================================
"""
