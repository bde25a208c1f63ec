"""The one write that a plan asks for, to the Secret of a Token.

Each write is safe against what may have happened since the Secret was read: a new one is created and nothing else, a
change and a deletion name uid and version of what was read. So a Secret that is not the Token's is never changed.

No token is ever logged, reported or kept anywhere but in its Secret.
"""

from __future__ import annotations

import base64
import logging
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.token import Token
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import SECRETS, TOKENS
from slinky_operator.reconcile.writes.parts import owner_reference
from slinky_operator.token import jwts
from slinky_operator.token.plan import Plan, Write
from slinky_operator.token.snapshot import Snapshot

logger = logging.getLogger(__name__)

_OVERTAKEN: Final = (errors.Conflict, errors.NotFound)


async def carry_out(kube: Kube, snapshot: Snapshot, plan: Plan) -> bool:
    """Carry out the write of a plan.

    Returns
    -------
    bool
        False if the Secret is no longer what the plan has seen: nothing was written, and another pass is needed.

    Raises
    ------
    UnusableKey
        The Cluster's key cannot sign.
    KubeError
        The API server failed or refused.
    """
    token, secret = snapshot.token, snapshot.secret
    name, namespace = token.secret_name, token.namespace
    value = ""
    if plan.write in {Write.CREATE, Write.PATCH} and plan.claims is not None and snapshot.key is not None:
        value = base64.b64encode(jwts.make(plan.claims, snapshot.key).encode()).decode()
    try:
        if plan.write is Write.CREATE:
            _ = await kube.create(SECRETS, _body(token, value), namespace)
        elif secret is not None and plan.write in {Write.PATCH, Write.CLEAR}:
            _ = await kube.merge_patch(
                SECRETS,
                name,
                {"data": {token.secret_key: value or None}},
                namespace,
                resource_version=secret.resource_version,
                uid=secret.uid,
            )
        elif secret is not None and plan.write is Write.DELETE:
            _ = await kube.delete(SECRETS, name, namespace, uid=secret.uid, resource_version=secret.resource_version)
    except _OVERTAKEN:
        logger.info("Secret %s/%s has changed since it was read", namespace, name)
        return False
    return True


def _body(token: Token, value: str) -> Object:
    """The Secret, owned by its Token: deleted with it."""
    about = {
        "name": token.secret_name,
        "namespace": token.namespace,
        "labels": {
            labels.LABEL_APP_NAME: "slurm",
            labels.LABEL_APP_COMPONENT: "token",
            labels.LABEL_APP_PART_OF: "slurm",
            labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
            labels.LABEL_TOKEN_UID: token.uid,
        },
        "ownerReferences": [owner_reference(TOKENS, token, blocks=False)],
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": about,
        "type": "Opaque",
        "data": {token.secret_key: value},
    }
