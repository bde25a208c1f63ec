"""What is read from a pod's object, and what its name and its places say. Slurm's side is joined in `member`.

============  =======================================================================
module        concern
============  =======================================================================
`guard`       the second owner of all pods, which keeps the garbage collector away
`hindrance`   why a pod does not run, in a form that does not change with the clock
`lost_labels` what a pod has lost of the labels by which the operator finds it
`output_room` how much room the volumes of job output have
`pod_facts`   the facts in a pod's object, read once and frozen
`pod_names`   slots of pods, and the names of pods and of their nodes in Slurm
`registered_pods` which pods have registered with Slurm, as the NodeSet's status records them
`scheduling`  on which Kubernetes Nodes a pod may run
============  =======================================================================
"""
