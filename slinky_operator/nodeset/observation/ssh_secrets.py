"""Whether the Secrets that `spec.ssh` names are there; read by name, since the operator lists and watches no Secrets.

Nothing of them is kept but what is missing: pods mount them, and start without them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import SECRETS
from slinky_operator.nodeset.model.ssh_keys import AUTHORIZED_KEYS, HOST_KEYS, MissingKeys, Wanted
from slinky_operator.slurm.pod_templates import ssh_server


def wanted(nodeset: NodeSet) -> Wanted:
    """Secrets that a NodeSet names for logins, by field."""
    ssh = nodeset.spec.ssh
    if ssh is None or nodeset.deleting:
        return ()
    named = ((AUTHORIZED_KEYS, ssh.authorized_keys_ref), (HOST_KEYS, ssh.host_keys_ref))
    return tuple((field, ref.name) for field, ref in named if ref is not None)


async def missing(kube: Getter, namespace: str, named: Wanted) -> tuple[MissingKeys, ...] | None:
    """What is missing of these Secrets; None if the API server does not say.

    Parameters
    ----------
    kube
        Reads one Secret at a time.
    namespace, named
        Where they are, and the fields that name them.
    """
    found = []
    for field, name in named:
        try:
            data = (await kube.get(SECRETS, name, namespace)).get("data") or {}
        except errors.NotFound:
            found.append(MissingKeys(field, name, is_there=False))
        except errors.KubeError:
            # Logins are no reason to fail a pass that has nodes to look after.
            return None
        else:
            if field == HOST_KEYS and not any(fnmatchcase(key, ssh_server.HOST_KEYS) for key in data):
                found.append(MissingKeys(field, name, is_there=True))
    return tuple(found)
