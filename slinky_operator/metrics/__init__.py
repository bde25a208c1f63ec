"""The operator's own metrics: what it does, what it waits for, and how its objects are. Slurm's are the exporter's.

=================  =========================================================================================
module             concern
=================  =========================================================================================
`budgets`          what the cached objects take, and the namespaces that are over their budget
`calls`            calls to the API server and to slurmrestd: how many, how they ended, how long they took
`changes`          what the operator has done: pods made and deleted, drains, preflights, configurations, Events
`contacts`         the client map and the caches of the API server, as they are when somebody scrapes
`job_changes`      what the operator has done with SlurmJobs: submissions, how long they took
`job_objects`      how SlurmJobs are now, as their status says: counted by state
`names`            how metrics of the operator are named, and how much may be in a page
`objects`          how NodeSets, Clusters, LoginSets, Tokens and jobs as objects are now
`process`          metrics of the process: controllers, leadership, event loop
`virtual_objects`  virtual Nodes, and the pods on them
=================  =========================================================================================
"""
