"""What a pod on a virtual Node asks for, in the fields of a SlurmJob.

=================  ======================================================================
module             concern
=================  ======================================================================
`slurmjob`         a pod as the spec of a SlurmJob: its script, or its image
`pod_fields`       which fields of a pod are used, ignored and refused
`job_annotations`  fields of a SlurmJob that a pod asks for by annotations
`environment`      variables, and references to them in commands
`volumes`          what an image sees of its node
=================  ======================================================================

All of it is pure. A field is used, ignored by a written list, or refused by its path with what to do.
"""
