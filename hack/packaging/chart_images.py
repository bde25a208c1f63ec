"""The images that the operator's chart names: a list for its templates, the schema and the table of their values.

All follow from `slinky_api.containers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hack.packaging.render import OPERATOR_CHART, ROOT
from slinky_api.containers import with_images

HEADER = """\
# Generated from slinky_api.containers by 'python -m hack.packaging write'. Do not edit.
# The images that slurm.images may name; the version of one that is not Slurm's.
"""


def files() -> dict[str, str]:
    """The list by its path from the root of the repository."""
    lines = [f'- {{name: {one.name}, version: "{one.version}"}}\n' for one in with_images()]
    path = OPERATOR_CHART / "files" / "images.yaml"
    return {str(path.relative_to(ROOT)): HEADER + "".join(lines)}


def properties() -> dict[str, Any]:
    """Schema of `slurm.images`."""
    return {one.name: {"$ref": "#/definitions/imageName"} for one in with_images()}


def texts() -> Mapping[str, str]:
    """What the table of values has about each of them."""
    return {
        one.name: f"Full name of the image of {one.title}, instead of "
        + (f"{one.name}:{one.version} in the registry." if one.version else "registry and version.")
        for one in with_images()
    }
