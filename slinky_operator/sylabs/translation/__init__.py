"""What a manifest for sylabs' operators asks for, in the fields of a SlurmJob.

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`slurmjob`       an object of an old kind as the spec of a SlurmJob: files that are copied, an image as a script
`site`           what an administrator says once: labels, how images run, whether files are copied
`node_selector`  labels of virtual nodes as partition and features
`transfers`      ``prepare`` and ``results``
`apptainer`      the script that runs an image with Apptainer
`pyxis`          the same with pyxis
`bundle`         the script that runs an image with ``srun --container``
`image_folder`   the folder that such a script makes, and removes at its end
`status`         the old ``status``
===============  ==========================================================================================

All of it is pure. A field is acted on, or refused by its old name with what to write instead; a label that means
nothing any more is reported. What becomes of a SlurmJob is left to `slinky_operator.jobs`.
"""
