"""What a NodeSet shows: status, conditions, status text and Events.

Types and reasons of conditions are in `slinky_api.conditions`; `status` has a rule for each condition, `troubles` what
`Degraded` names, `progress` what `Progressing` and `Draining` name, `summary` the status text.
"""
