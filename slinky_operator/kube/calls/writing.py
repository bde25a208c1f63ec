"""Writes to the Kubernetes API, each of which passes the write fence first."""

from __future__ import annotations

from enum import StrEnum

from slinky_operator.kube.calls.transport import Transport
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object, Objects
from slinky_operator.kube.resources import Resource


class Propagation(StrEnum):
    """What becomes of the dependents of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Writing(Transport):
    """What writes."""

    async def create(
        self, resource: Resource, body: Object, namespace: str | None = None, *, dry_run: bool = False
    ) -> Object:
        """Create an object; raises `AlreadyExists` if there is one of that name.

        Never repeated after an unclear failure (`Unavailable.maybe_done`): a name of one's own choice makes
        the next attempt safe, since it then says `AlreadyExists`.
        """
        metadata = body.get("metadata") or {}
        namespace = namespace or metadata.get("namespace")
        target = Target("create", str(resource), namespace, metadata.get("name") or metadata.get("generateName"))
        query = self._write_query(dry_run=dry_run)
        return await self._send(
            target, "POST", resource.path(namespace if resource.namespaced else None), query=query, body=body
        )

    async def apply(
        self,
        resource: Resource,
        body: Object,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: own exactly the fields in `body`, create the object if it does not exist.

        Parameters
        ----------
        body
            The fields to own, with `metadata.name`, and `metadata.namespace` where there is one. A
            `metadata.uid` makes it fail with `Conflict` if the object was replaced. `apiVersion` and `kind` are
            filled in.
        subresource
            `status` to own status fields.
        force
            Take over fields that another manager owns; otherwise that is a `Conflict` whose causes name them.
        """
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        target = Target("apply", str(resource), namespace, name)
        query = self._write_query(field_manager=field_manager, dry_run=dry_run) | {"force": str(force).lower()}
        return await self._send(
            target,
            "PATCH",
            resource.path(namespace, name, subresource),
            query=query,
            body=body,
            content_type="application/apply-patch+yaml",
            # A version in the body makes a repetition after success fail.
            repeatable="resourceVersion" not in metadata,
        )

    async def apply_status(self, resource: Resource, body: Object, *, force: bool = True) -> Object:
        """Server-side apply of status fields; the object must exist."""
        return await self.apply(resource, body, subresource="status", force=force)

    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        """JSON merge patch: `None` removes a field, lists are replaced whole.

        Parameters
        ----------
        resource_version, uid
            If given, raise `Conflict` unless the object still has them.
        """
        identity = {k: v for k, v in (("resourceVersion", resource_version), ("uid", uid)) if v is not None}
        if identity:
            patch = {**patch, "metadata": {**(patch.get("metadata") or {}), **identity}}
        target = Target("patch", str(resource), namespace, name)
        return await self._send(
            target,
            "PATCH",
            resource.path(namespace, name, subresource),
            query=self._write_query(),
            body=patch,
            content_type="application/merge-patch+json",
            repeatable="resourceVersion" not in (patch.get("metadata") or {}),
        )

    async def patch_status(
        self,
        resource: Resource,
        name: str,
        status: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        """Merge `status` into the object's status."""
        return await self.merge_patch(
            resource,
            name,
            {"status": status},
            namespace,
            subresource="status",
            resource_version=resource_version,
            uid=uid,
        )

    async def json_patch(
        self,
        resource: Resource,
        name: str,
        operations: Objects,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> Object:
        """JSON patch; a `test` operation that does not hold raises `Invalid`."""
        target = Target("patch", str(resource), namespace, name)
        return await self._send(
            target,
            "PATCH",
            resource.path(namespace, name, subresource),
            query=self._write_query(),
            body=operations,
            content_type="application/json-patch+json",
        )

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None, repeatable: bool = False
    ) -> Object:
        """PUT the whole object; with `metadata.resourceVersion` it raises `Conflict` if somebody wrote since."""
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        target = Target("update", str(resource), namespace, name)
        return await self._send(
            target,
            "PUT",
            resource.path(namespace, name, subresource),
            query=self._write_query(),
            body=body,
            repeatable=repeatable,
        )

    async def scale(self, resource: Resource, name: str, namespace: str, replicas: int) -> Object:
        """Set `spec.replicas` through the scale subresource."""
        return await self.merge_patch(resource, name, {"spec": {"replicas": replicas}}, namespace, subresource="scale")

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete an object.

        Parameters
        ----------
        uid
            The object must have this uid, or `Conflict` is raised: a namesake that replaced it stays. `None`
            has to be written out: it deletes whatever has the name.
        resource_version
            The object must not have changed since, or `Conflict` is raised.
        propagation
            What becomes of dependents; `None` leaves it to the kind's default.
        grace_seconds
            Seconds between SIGTERM and SIGKILL for pods.

        Returns
        -------
        dict
            The object with its `deletionTimestamp` while it still exists, or a `Status`.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v is not None}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation is not None:
            options["propagationPolicy"] = str(propagation)
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if dry_run:
            options["dryRun"] = ["All"]
        target = Target("delete", str(resource), namespace, name)
        return await self._send(
            target,
            "DELETE",
            resource.path(namespace, name),
            body=options,
            # By name alone, a repetition could hit the successor of what the first attempt deleted.
            repeatable=uid is not None,
        )

    async def evict(
        self, resource: Resource, name: str, namespace: str, *, uid: str, resource_version: str | None = None
    ) -> Object:
        """Evict a pod, which then ends within its grace period; `TooManyRequests` if a disruption budget forbids it.

        Parameters
        ----------
        uid, resource_version
            The pod must have this uid, and not have changed if a version is given, or `Conflict` is raised.
        """
        version = {} if resource_version is None else {"resourceVersion": resource_version}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid, **version}},
        }
        return await self._send(
            Target("evict", str(resource), namespace, name),
            "POST",
            resource.path(namespace, name, "eviction"),
            query=self._write_query(),
            body=body,
            repeatable=True,
        )
