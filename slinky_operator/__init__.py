"""A Kubernetes operator that runs Slurm and drains nodes before it deletes them.

=======================  ==============================================================================================
module                   concern
=======================  ==============================================================================================
`agent`                  names under which pods start the agent; the program is in `pod_programs`
`app`                    wiring: everything that lives as long as the process is built, connected, run and stopped here
`autoscaling`            autoscaling: sets the replicas of NodeSets by the pending jobs of their Cluster
`bridge`                 Slurm places pods of Kubernetes: Nodes are nodes of Slurm, groups of pods are jobs
`cli`                    the program ``slurm-operator``: the operator itself, or one of its commands
`cluster`                the Cluster controller: runs slurmctld and slurmrestd, or connects to external ones
`controllers`            which controllers this process runs; what is switched off is not imported
`conversion`             ``slurm-operator convert``: values and objects of Slinky's charts become those of this project
`custom_resource_watch`  kopf watches the custom resources and passes events on
`identity`               users of a Cluster, for every daemon that resolves names: below the controllers
`joblogs`                the name under which pods start what serves files of jobs; the program is in `pod_programs`
`jobs`                   jobs as objects: what a SlurmJob asks for as a submission to slurmrestd
`kube`                   thin facade over the Kubernetes API: dictionaries in, dictionaries out
`loginset`               the LoginSet controller: login pods of a Cluster, sackd beside an SSH server
`metrics`                the operator's own metrics: what it does, what it waits for, and how its objects are
`node_labels`            labels and extended resources on Kubernetes Nodes that say which Slurm hardware they have
`nodeset`                the NodeSet controller: a set of slurmd pods, none of which is deleted while it may hold a job
`pod_programs`           programs that run in pods beside Slurm's daemons and jobs
`preview`                ``slurm-operator preview``: what a change would write, and the trial of it
`process`                the process of the operator: read settings, run, return an exit status
`reconcile`              the skeleton of every controller: how objects are read, reported on, finalized and queued
`runtime`                what every controller runs on: queue, loop, supervision, health, metrics, logging
`settings`               settings of the operator process: one frozen object from flags and environment
`slurm`                  what the controllers know of Slurm: names of a Cluster's objects, connections
`slurmjob`               the SlurmJob controller: batch jobs as objects
`sylabs`                 job kinds of sylabs' operators: each object becomes a SlurmJob, whose status it shows
`token`                  the Token controller: a JWT for one Slurm user, made from a Cluster's key
`virtual_nodes`          partitions as Kubernetes Nodes: pods that are bound to one run as SlurmJobs
=======================  ==============================================================================================
"""
