"""The skeleton of every controller: how objects are read, reported on, finalized and queued. It has no Slurm rule.

================  ==========================================================================================
module            concern
================  ==========================================================================================
`spec`            what a controller exports, so that the process can build and connect it
`reconciler`      the common half of a pass: get, parse, report what is invalid, run, report what failed
`triggers`        which keys an event puts on a controller's queue
`cached`          which objects are cached, what is kept of them, and what they are searched by
`writes`          children, finalizers and the status of an object, written
`failures`        what an object shows of a pass that failed
`clusters`        Clusters, parsed once for all controllers but their own
`secrets`         Secrets, read by name: the operator may not list them; keys of a Cluster that others use
`pod_trouble`     why the pod of a daemon does not start
`namespaces`      labels of Namespaces, read by name
`batches`         many concurrent calls, with a limit
`maintenance`     how a maintenance window is shown
`text`            how lists, times and long texts are written
================  ==========================================================================================

How a controller is added: docs/development/add-a-kind.md.
"""
