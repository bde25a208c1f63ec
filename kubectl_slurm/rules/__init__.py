"""What to say: pure functions from facts to blocks of text.

==============  ===========================================================
`status`        one screen about a namespace: what is not as wanted
`jobs`          jobs: why they wait, what holds them back, the queue
`nodes`         nodes: why they take no jobs, drains
`changes`       what applying an object would do, and what Slurm says of it
`tokens`        a list of Tokens
`conf`          files of the configuration, and what differs
`redaction`     texts and objects without secrets
`verification`  what a conformance run found
==============  ===========================================================
"""
