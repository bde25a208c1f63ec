"""The follower: prints the output of one job in a pod of its own, and exits as the job did.

==========  ============================================================================
module      concern
==========  ============================================================================
`printer`   prints until the job has ended
`sources`   where output is read: from the server, or from a mounted file
`job_file`  what the operator writes for it: state and places of the job
==========  ============================================================================
"""
