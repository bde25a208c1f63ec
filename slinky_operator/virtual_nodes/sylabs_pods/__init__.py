"""Pods that wlm-operator gave the objects of its kinds, `<name>-job`: each shows the SlurmJob of such an object.

============  ====================================================================
module        concern
============  ====================================================================
`model`       which pod a SlurmJob has, on which Node, and when it is made or goes
`controller`  one pass over a SlurmJob
`triggers`    what wakes a SlurmJob
`spec`        what the controller exports to the process
============  ====================================================================

Such a pod neither submits nor cancels anything, so it is made again when it has gone, until a while after the end of
the job. What it shows, and its output, is what `pods` and `kubelet` do for every pod on a virtual Node.
"""
