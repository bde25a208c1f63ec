"""The data of a pass: facts read from objects once and frozen, and the actions of a plan.

==================  =====================================================================================
module              concern
==================  =====================================================================================
`actions`           what a plan may consist of
`check_tables`      the ConfigMap with health checks: what all nodes run, and what one tries
`claims`            claims of `volumeClaimTemplates`: their names, and which of them belong to a NodeSet
`drain_requests`    requests of NVSentinel to drain Kubernetes Nodes
`kubernetes_nodes`  facts of Kubernetes Nodes
`loads`             how many nodes are idle, busy or out of service, counted on from what has changed
`machines`          what is done about the machine of a Node, and who may ask for it
`member`            a pod joined with its node in Slurm
`pod_state`         the one state of each pod, computed from what Kubernetes and Slurm show
`pods`              a pod's object: its name, its facts, why it does not run, where it may run, its guard
`revisions`         which part of a spec pods are created from, and what is recorded of it
`snapshot`          the frozen input of one pass
`ssh_keys`          what is missing of the keys that `spec.ssh` names
`takeover`          pods that Slinky's own operator, 0.1 to 0.3, created for a NodeSet
==================  =====================================================================================
"""
