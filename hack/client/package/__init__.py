"""
What of the package ``slurm_client`` follows from other code: the blocking calls, the table of coverage, the reference.

``python -m hack.client.package`` writes them; a test checks that they are up to date.
"""
