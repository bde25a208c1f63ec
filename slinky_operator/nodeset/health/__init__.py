"""Bad Kubernetes Nodes: what the rules of `spec.health` say of each, and which nodes are drained for it. Pure.

`rules` judges one Node by its conditions; `choice` keeps the number of drained nodes within the budget, and
`replacement` says which of them are recreated once they hold no job. The drain is one of `drain`, for the cause
`Cause.HEALTH`; what is reported of it is in `report`.
"""
