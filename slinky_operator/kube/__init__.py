"""A thin facade over the Kubernetes API: dictionaries in, dictionaries out.

Everything the operator reads from or writes to Kubernetes outside of kopf goes through here. The package knows
HTTP, caches, leases and Events; it knows nothing about Slurm, clusters or node sets.

=================  ====================================================================
module             concern
=================  ====================================================================
`connection`       where the API server is and how to log in
`resources`        names of the API resources in use
`client`           one method per API verb
`errors`           what an API call can raise
`fence`            no write after leadership may have been lost
`lease`            leader election
`store`            cache of objects with indexes
`informer`         keeps a store equal to the API server by list and watch
`mirror`           a store fed from outside (kopf), compared with a slow relist
`expectations`     own writes that the caches have not shown yet
`events`           Events on objects, aggregated and rate-limited
=================  ====================================================================
"""
