"""A real Kubernetes on one Linux machine, without Docker.

Every Node is a *machine*: a process tree in its own pid, mount, network, uts and ipc namespaces that looks to the
kubelet and to containerd like a host of its own.

What a Node mounts, routes or filters stays in its namespaces, so ending the
first process of a machine takes everything along, and the host's own containerd, kubelet, Docker and firewall are never
touched.

It leaves building container images to `hack.images`.
"""
