"""The kubelet API of virtual Nodes: output of containers for the API server, and one sentence for all else.

==============  ======================================================================================
module          concern
==============  ======================================================================================
`build`         the service from what the process has
`service`       the port with its certificate and its callers, as long as the process runs
`answers`       what is answered to which path
`callers`       who may ask: client certificates, tokens, rights
`certificate`   the certificate, mounted or made here
`listener`      connections: how many, for how long, and whose
`shares`        places that many share, by address or by namespace
`served_pods`   what is known of a pod and of its SlurmJob
`log_request`   what a caller wants of the output, and what of that can be true
`log_stream`    the output, a piece at a time, to its end
`output`        where the output is, and a token for it
`refusal`       the one error
==============  ======================================================================================

One port serves all virtual Nodes: the pod in a path says which Node is meant. Which pods there are, and which
SlurmJob runs for each, is known from caches (`slinky_operator.virtual_nodes.pod_jobs`).
"""
