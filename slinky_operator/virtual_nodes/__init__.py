"""Partitions of Slurm as Kubernetes Nodes: pods that are bound to such a Node run as SlurmJobs.

=============  ===========================================================================================
module         concern
=============  ===========================================================================================
`node_names`   names of virtual Nodes, what marks them, and what a virtual Node stands for
`directory`    which virtual Nodes there are, from the cache of Nodes
`arrival`      how one knows to have arrived at the kubelet API of this process
`pod_jobs`     pods on virtual Nodes, the SlurmJobs that they own, and the caches of both
`nodes`        the Nodes and their Leases
`pods`         the pods on them: refused, run as SlurmJobs that they own, shown, and ended
`sylabs_pods`  pods that show the jobs of sylabs' kinds, as wlm-operator's did
`kubelet`      what the API server asks of a kubelet: the output of containers
=============  ===========================================================================================

What submits, cancels and watches jobs is `slinky_operator.slurmjob`; who may submit is `slinky_operator.jobs.tenants`.

An outage never cancels a job: a pod that was deleted because its Node was not ready leaves its SlurmJob behind.
"""
