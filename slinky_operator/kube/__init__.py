"""A thin facade over the Kubernetes API: dictionaries in, dictionaries out.

Everything the operator reads from or writes to Kubernetes outside of kopf goes through here. The package knows
HTTP, caches, leases and Events; it knows nothing about Slurm, clusters or node sets.

===============  ===============================================================================
room             concern
===============  ===============================================================================
`client`         one method per API verb
`errors`         what an API call can raise
`objects`        objects, collections and changes as dictionaries
`resources`      names of the API resources in use
`ports`          what controllers use of the API server and of Events, as protocols
`events`         Events on objects, aggregated and rate-limited
`domain`         the DNS domain of the Kubernetes cluster
`calls`          where the API server is, how a request is sent and repeated, reads and writes
`cache`          stores with indexes, what fills them, and own writes that they do not show yet
`leadership`     the Lease, the fence before every write, and other operators for the same kinds
`node_taints`    by which taints autoscalers say that a Node is going
`shared_memory`  a bounded memory that namespaces share
===============  ===============================================================================
"""
