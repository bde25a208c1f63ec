"""The skeleton of every controller: how objects are read, reported on, finalized and queued. It has no Slurm rule.

================  ==========================================================================================
module            concern
================  ==========================================================================================
`spec`            what a controller exports, so that the process can build and connect it
`reconciler`      the common half of a pass: get, parse, report what is invalid, run, report what failed
`triggers`        which keys an event puts on a controller's queue
`caches`          the caches of all controllers, each kind watched once
`kept_fields`     which fields of pods and claims the caches keep
`ownership`       which owners an object with the operator's labels may have
`scripts`         long scripts of jobs, which caches leave out and rules read again
`gate`            which passes wait for a cache that does not have all their rules read
`indexes`         what more than one controller looks objects up by, and what caches keep of a Node
`writes`          children, finalizers and the status of an object, written
`failures`        what an object shows of a pass that failed
`secrets`         Secrets, read by name: the operator may not list them
`pod_trouble`     why the pod of a daemon does not start
`namespaces`      labels of Namespaces, read by name
`signing_key`     the key that tokens of a Cluster are signed with
`batches`         many concurrent calls, with a limit
`text`            how lists, times and long texts are written
================  ==========================================================================================

How a controller is added: docs/architecture.md.
"""
