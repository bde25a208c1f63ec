"""The Cluster controller: runs slurmctld and slurmrestd, or connects to external ones, and maintains slurm.conf.

A pass goes `observe` -> `plan` -> `executor`, and then the status is written, all called by `controller`.

============  ============================================================================================
room          concern
============  ============================================================================================
`spec`        what the controller exports to the process: its caches, and how it is built
`triggers`    which Clusters an event is about
`controller`  one pass
`observe`     the frozen snapshot that a pass plans from
`view`        the snapshot with images and the time: what rules decide from
`plan`        from the snapshot to actions, status and the next time to look
`pass_state`  what is known in one pass: each part's findings for those after it
`part`        what a part answers for: the Secrets it reads, and what it shows
`actions`     the actions of a plan, as data
`question`    what a part wants to know from the world, and the answers that are remembered
`executor`    carries out a plan; no rules
`context`     what actions are carried out with: clients, the recorder of Events, the clock
`memory`      what is kept between two passes and is in no cache
`secrets`     what must be in Secrets that users name, and for which servers they are meant
`adoption`    what deleted Clusters have left, and who owns it now
`writes`      which objects are written, and how the API server takes them
`parts`       the parts of a Cluster, a folder each
`daemons`     what daemons share: their protocol, images, and pieces of their manifests
`rollout`     from the texts of all parts to a live slurm.conf
`trials`      disposable pods that try something before a running daemon reads it
`status`      status, conditions, status text and Events
============  ============================================================================================
"""
