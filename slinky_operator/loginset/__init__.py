"""The LoginSet controller: login pods of a Cluster, sackd beside an SSH server.

============  ==================================================================================
module        concern
============  ==================================================================================
`observe`     one frozen snapshot of caches and Secrets
`plan`        pure: snapshot to actions, status and Events
`needs`       what login pods need of their Cluster and of Secrets, and what is missing; pure
`trial`       whether sshd accepts a configuration: the pod that tries it, and its outcome; pure
`bodies`      pods, Services, Secrets and texts of a LoginSet; pure
`report`      conditions and the rest of the status; pure
`execute`     carries out actions
`controller`  one pass
`names`       names and labels of what belongs to a LoginSet
`scripts`     what runs in the pods: POSIX shell, mounted from the ConfigMap
`spec`        what the controller exports to the process
`triggers`    which LoginSets an event is about
============  ==================================================================================

The pods depend on little: a change of configuration, keys or scripts reaches running pods through their volumes, and
ends no session.
"""
