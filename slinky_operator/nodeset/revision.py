"""The hash that tells whether a pod is what its NodeSet's spec describes.

It covers what the user wrote and a generator version that is raised on purpose. The operator's own defaults are not in
it: a new release, or another default image, replaces no pod.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from slinky_api.v1alpha1.nodeset import NodeSet

GENERATOR: Final = 1
"""Raised when pods made by older releases must be replaced; every NodeSet then rolls."""

_LENGTH: Final = 10


def of(nodeset: NodeSet) -> str:
    """Hash of everything in the spec that a pod is made from."""
    spec = nodeset.spec
    content = {
        "generator": GENERATOR,
        "template": spec.template,
        "image": spec.image,
        "resources": spec.resources.to_dict() if spec.resources is not None else None,
        "features": list(spec.features),
        "gres": spec.gres,
        "weight": spec.weight,
        "extraConf": spec.extra_conf,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
