"""What a manifest for sylabs' operators asks for, in the fields of a SlurmJob.

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`slurmjob`       an object of an old kind as the spec of a SlurmJob: files that are copied, an image as a script
`site`           what an administrator says once: labels, how images run, whether files are copied
`node_selector`  labels of virtual nodes as partition and features
`transfers`      ``prepare`` and ``results``
`status`         the old ``status``
===============  ==========================================================================================

All of it is pure. A field is acted on, or refused by its old name with what to write instead; a label that means
nothing any more is reported. What becomes of a SlurmJob is left to `slinky_operator.jobs`, and so is how an image
becomes a script (`jobs.images`).
"""
