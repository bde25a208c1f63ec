"""Errors of commands for developers; each text says what to do."""

from __future__ import annotations


class DevelopingError(Exception):
    """A command for developers cannot go on."""


class KubectlFailed(DevelopingError):
    """kubectl ended with an error."""

    def __init__(self, arguments: tuple[str, ...], stderr: str) -> None:
        super().__init__(f"`kubectl {' '.join(arguments)}` failed: {stderr.strip()}")


class NoKinds(DevelopingError):
    """The CRDs are not installed."""

    def __init__(self) -> None:
        super().__init__("this Kubernetes has no Clusters: install the CRDs with `make install`")


class OperatorDeployed(DevelopingError):
    """An operator runs in Kubernetes already."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(
            f"the operator runs in Kubernetes (Deployment {namespace}/{name}) and holds the Lease: end it with "
            f"`make undeploy`, or for a while with `kubectl -n {namespace} scale deployment/{name} --replicas=0`"
        )
