"""What to say: pure functions from facts to blocks of text.

==============  ======================================================================================================
`status`        one screen about a namespace: what is not as wanted
`queue`         why jobs wait, counted
`service`       nodes that take no jobs, who said so, and since when
`endings`       tokens and keys that end soon
`tokens`        a list of Tokens
`job`           why a job waits, or what became of it
`limits`        which limit holds a job back, and who uses it
`near_misses`   what each node lacks for a job
`node`          why a node takes no job
`drains`        what a drain or an undrain would change
`conf`          files of the configuration, and what differs
`preflight`     what applying an object would do to nodes and jobs
`trial`         what Slurm says of a changed configuration
`redaction`     texts and objects without secrets
`verification`  what a conformance run found
==============  =====================================================================================================
"""
