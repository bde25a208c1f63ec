"""Carries out the actions of a plan. No rules. Each may be repeated, and the caches may be outdated."""

from __future__ import annotations

import base64
import logging
from typing import assert_never

from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.kube import errors
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import PODS, SECRETS
from slinky_operator.loginset import needs
from slinky_operator.loginset.bodies import host_keys, objects
from slinky_operator.loginset.plan import Action, Create, MakeHostKeys, Remove, Write
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.runtime import threads

logger = logging.getLogger(__name__)


async def act(actions: tuple[Action, ...], loginset: LoginSet, kube: Kube, secrets: SecretReader) -> bool:
    """Carry out actions in order.

    Returns
    -------
    bool
        Whether something was learned that no cache shows, so that another round is worthwhile at once.

    Raises
    ------
    KubeError
        The API server failed or refused.
    """
    again = False
    for action in actions:
        match action:
            case MakeHostKeys():
                await _make_host_keys(action.name, loginset, kube)
                secrets.forget(loginset.namespace, action.name)
                again = True
            case Write():
                await _write(action, loginset, kube)
            case Create():
                try:
                    _ = await kube.create(PODS, action.body, loginset.namespace)
                except errors.AlreadyExists:
                    logger.info("pod %s is there already", action.body["metadata"]["name"])
            case Remove():
                try:
                    _ = await kube.delete(action.resource, action.name, loginset.namespace, uid=action.uid)
                except (errors.NotFound, errors.Conflict):
                    logger.info("%s %s has gone already", action.resource.kind, action.name)
            case _:
                assert_never(action)
    return again


async def _make_host_keys(name: str, loginset: LoginSet, kube: Kube) -> None:
    """Create the Secret; one that exists, an earlier pass may have made, and it is never overwritten."""
    data = await threads.KEYS.run((loginset.namespace, loginset.uid), host_keys.generate, loginset.name)
    body = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": objects.metadata(loginset, name),
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    try:
        _ = await kube.create(SECRETS, body, loginset.namespace)
    except errors.AlreadyExists:
        logger.info("Secret %s is there already", name)


async def _write(action: Write, loginset: LoginSet, kube: Kube) -> None:
    """Apply an object, unless one of its name has another owner: the next pass reports that one."""
    child = action.child
    live = action.live
    if live is None:
        try:
            live = await kube.get(child.resource, child.name, loginset.namespace)
        except errors.NotFound:
            live = None
    if live is not None and not needs.is_ours(live, loginset.name):
        logger.info("%s %s has another owner", child.resource.kind, child.name)
        return
    body = child.body
    if live is not None:
        body = {**body, "metadata": {**body["metadata"], "uid": live["metadata"]["uid"]}}
    # Force is not used to create an object: one that somebody has created meanwhile is not taken over.
    _ = await kube.apply(child.resource, body, force=live is not None)
