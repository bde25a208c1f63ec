"""The placement of pods: how many, on which Kubernetes Nodes, with which names and claims."""
