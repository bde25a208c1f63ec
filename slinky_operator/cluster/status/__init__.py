"""What a Cluster shows: status, conditions, status text and Events.

================  ======================================================================
module            concern
================  ======================================================================
`status`          the whole status, and the patch that writes it
`answers`         what the parts answer
`conditions`      `Ready`, `Progressing`, `Degraded`, and the conditions of the parts
`summary`         the text of the column STATUS
`events`          which changes of conditions become Events
`not_supported`   fields that have no effect
================  ======================================================================
"""
