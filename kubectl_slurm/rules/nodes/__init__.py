"""What to say of nodes.

=========  ====================================================
`node`     why a node takes no job
`service`  nodes that take no jobs, who said so, and since when
`drains`   what a drain or an undrain would change
=========  ====================================================
"""
