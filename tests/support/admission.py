"""Admission policies that reject objects, as a cluster's own do: the API server answers 403 with their message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import CONFIGMAPS, Resource

POLICIES: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


@asynccontextmanager
async def refused(kube: KubeClient, namespace: str, operation: str, resource: str, words: str) -> AsyncIterator[None]:
    """Let the API server refuse an operation (`DELETE`) on a resource (`pods`) of a namespace."""
    name = f"{namespace}-{operation.lower()}-{resource.replace('/', '-')}"
    # Creating a ConfigMap is refused too: by that it is seen when the policy works.
    rules = [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": [operation], "resources": [resource]},
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
    ]
    probe = "request.operation == 'CREATE' && request.resource.resource == 'configmaps'"
    expression = f"{probe} && request.name != '{name}'"
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": rules,
            },
            "validations": [{"expression": expression, "message": words, "reason": "Forbidden"}],
        },
    }
    await kube.create(POLICIES, body)
    await kube.create(
        BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    )
    try:
        while True:
            try:
                made = await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace)
            except errors.Forbidden:
                break
            await kube.delete(CONFIGMAPS, name, namespace, uid=made["metadata"]["uid"])
            await asyncio.sleep(0.05)
        yield
    finally:
        await kube.delete(BINDINGS, name, uid=None)
        await kube.delete(POLICIES, name, uid=None)
