"""What `slurm-operator convert` does: values and objects of Slinky's charts become those of this project.

Pure, but for `command`, which reads files and prints. Nothing here asks Kubernetes or Slurm, and nothing of the
operator is imported, so that the command starts at once.

================== ==================================================================================
module             what it is for
================== ==================================================================================
`command`          the command line: files in, values or manifests out, the report, the exit status
`values`           a values file of the chart `slurm` or `slurm-operator`
`defaults`         what Slinky's chart does where nothing is set
`elsewhere`        a slurmctld that Slinky does not run
`kinds`            rendered objects: Cluster, NodeSet, Controller, RestApi, Accounting, LoginSet, Token
`tables`           what each value and field becomes: a row for each key
`rules`            what a row of a table says, and how the value is taken over
`walk`             goes through an input by a table: every key gets exactly one row of the report
`draft`            what has been converted so far: a Cluster, its NodeSets and Tokens
`report`           the report, key by key, as text and as JSON
`texts`            images, and lines of slurm.conf
`documents`        YAML in, within bounds, and out
`errors`           what ends a conversion
================== ==================================================================================
"""
