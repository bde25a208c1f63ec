"""The part of `executor` that writes Kubernetes objects: Secrets with keys, claims, ServiceMonitors and all others."""
