"""What to say: pure functions from facts to blocks of text.

=============  ======================================================================================================
`status`       one screen about a namespace: what is not as wanted
`queue`        why jobs wait, counted
`service`      nodes that take no jobs, who said so, and since when
`endings`      tokens and keys that end soon
=============  ======================================================================================================
"""
