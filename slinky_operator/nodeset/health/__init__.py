"""Bad nodes: what the rules and checks of `spec.health` say of each, and which are drained for it. Pure.

`rules` judges a Kubernetes Node by its conditions, and `checks` a node by what its health checks have reported;
`check_trial` decides which nodes run which checks; `choice` keeps the number of drained nodes within the budget, and
`replacement` says which of them are recreated once they hold no job, and `machines` whose machines are rebooted or
deleted. The drain is one of `drain`, for the cause
`Cause.HEALTH`; what is reported of it is in `report`. `node_states` has states of nodes as conditions of their pods.
"""
