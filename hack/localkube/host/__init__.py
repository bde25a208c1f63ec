"""The machine below the cluster: processes in namespaces of their own, cgroups, the network, sysctls.

It knows nothing of Kubernetes. What it changes on the host, it can put back.
"""
