"""Images as scripts: how the nodes of a job fetch an image and run it.

==============  ===========================================================================================
module          concern
==============  ===========================================================================================
`runtimes`      the ways in which images run, and the lines of each
`apptainer`     the script that runs an image with Apptainer
`pyxis`         the same with pyxis
`bundle`        the script that runs an image with ``srun --container``
`program`       what runs in an image, and what it sees of its node
`image_folder`  the folder that such a script makes, and removes at its end
==============  ===========================================================================================

All of it is pure. Fields are named as in a WlmJob; who translates another kind names its own.
"""
