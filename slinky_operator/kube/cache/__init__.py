"""What the operator sees of Kubernetes without asking: stores, what fills them, and what is read from them once.

================  =========================================================================================
module            concern
================  =========================================================================================
`budget`          how much memory the cached objects of a namespace may take, and what is left out
`expectations`    own writes that the caches have not shown yet
`informer`        keeps a store equal to the API server by list and watch
`interest`        which objects count: those that an owner in their namespace can have
`listed`          whole list on its way into a store, page by page
`managed_fields`  which fields of an object the operator's server-side apply has set
`mirror`          store for objects that kopf watches, compared with a list at intervals
`parse_cache`     parsed custom resources: each version of an object is parsed once, large ones in a thread
`store`           cache of objects by namespace and name, with indexes
`stubs`           small objects in place of those for which a namespace has no room
`total`           how much memory the cached objects of all namespaces may take together, and who gives way
`weight`          how much work an object may cause, and where it is done
================  =========================================================================================
"""
