"""What a LoginSet consists of in Kubernetes: pure functions from a LoginSet and what is known to bodies.

=============  ==============================================================================================
module         concern
=============  ==============================================================================================
`pod`          the pod template
`objects`      Deployment, Service, ConfigMap and Secret
`slurm_access` what a pod needs to reach Slurm
`sshd_config`  composes sshd_config from the spec, and finds the user's line in sshd's messages
`host_keys`    generates SSH host keys, and shows fingerprints
=============  ==============================================================================================
"""
