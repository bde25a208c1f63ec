"""The server of job files: beside slurmd, one process that talks to callers and one that opens files.

=============  ==========================================================================
module         concern
=============  ==========================================================================
`listener`     talks to callers, in a process without any right
`connections`  the share of connections that each caller has
`opening`      checks tokens and opens files, in a process that sees no network
`openings`     the share of openings that each caller and each user has
`retention`    deletes what nobody needs any more
=============  ==========================================================================
"""
