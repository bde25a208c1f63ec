"""What is remembered about a Cluster between two passes and is in no cache of Kubernetes objects.

It may be lost at a restart: everything is queried again.

=========  ==========================================================================
module     concern
=========  ==========================================================================
`memory`   all of it
`rollout`  the configuration: loading, preflights, and what they leave out or hold back
`keys`     the keys of daemons, and the Secrets with them
`writes`   what came of own writes, and what was denied
=========  ==========================================================================
"""
