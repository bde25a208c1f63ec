"""What to say of a change before it is made.

===========  ==================================================
`preflight`  what applying an object would do to nodes and jobs
`trial`      what Slurm says of a changed configuration
===========  ==================================================
"""
