"""What a Cluster shows: status, conditions, status text and Events.

================  ======================================================================
module            concern
================  ======================================================================
`status`          the whole status, and the patch that writes it
`conditions`      the list of conditions, from what the parts have found
`summary`         the text of the column STATUS
`events`          which changes of conditions become Events
`not_supported`   fields that have no effect
`out_of_service`  nodes that get no jobs, and Slurm's reason
================  ======================================================================
"""
