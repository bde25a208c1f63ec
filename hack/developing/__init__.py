"""Developing against a Kubernetes: the operator on this machine, images and files on their way into a running one.

==============  ========================================================================
module          concern
==============  ========================================================================
`cluster`       what the current kubeconfig shows of Clusters, Nodes and an operator
`errors`        what can keep a command from going on
`forwards`      port-forwards to slurmrestd that are begun again when they end
`image`         skaffold's builder without Docker
`loop_check`    ``make skaffold-check``: every profile renders; from saving a file to running it
`registry`      a registry on loopback, which skaffold reads digests from
`routes`        routes from this machine to pods, where Nodes are on a network of it
`run`           ``make run``: the operator on this machine, started again for new Clusters
`tools`         skaffold, crane and kind, built from Go modules
==============  ========================================================================
"""
