"""The kubelet API of virtual Nodes: output of containers for the API server, and one sentence for all else."""
