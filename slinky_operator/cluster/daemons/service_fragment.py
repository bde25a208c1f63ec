"""What a user adds to the Service of a daemon: labels, annotations, and fields of its spec.

The operator decides whom a Service selects and which ports it has; of the user's ports only what does not concern other
pods is taken: the port of the Nodes, and what load balancers get for the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api.v1alpha1.common import ServiceFragment
from slinky_operator.kube.objects import Object

_OF_A_PORT: Final = ("nodePort", "appProtocol")


def with_fragment(body: Object, fragment: ServiceFragment | None) -> Object:
    """A Service with the user's labels and annotations beside the operator's.

    Parameters
    ----------
    body
        The Service, as the operator wants it.
    """
    if fragment is None:
        return body
    about = dict(body["metadata"])
    about["labels"] = {**fragment.labels, **(about.get("labels") or {})}
    if fragment.annotations:
        about["annotations"] = {**fragment.annotations, **(about.get("annotations") or {})}
    return {**body, "metadata": about}


def exposed(fragment: ServiceFragment | None, selector: Mapping[str, str], name: str, port: int) -> dict[str, Any]:
    """The spec of a Service of one port, with the user's fields except for selector and ports.

    Parameters
    ----------
    name, port
        Of the port.
    """
    own: dict[str, Any] = dict(fragment.spec) if fragment is not None else {}
    given = own.get("ports")
    items = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    theirs: Mapping[str, Any] = next(
        (one for one in items if one.get("port") == port or one.get("name") == name),
        items[0] if len(items) == 1 else {},
    )
    taken = {key: theirs[key] for key in _OF_A_PORT if key in theirs}
    return {
        **own,
        "selector": dict(selector),
        "ports": [{"name": name, "port": port, "protocol": "TCP", **taken}],
    }
