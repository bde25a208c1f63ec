"""Volumes of a pod as files and folders of the node that the image of its job sees. Pure.

An emptyDir and a ConfigMap are in the folder that the script makes for the job; a claim is one that nodes mount too.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.jobs.images.image_folder import FOLDER
from slinky_operator.jobs.images.program import Bind
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.virtual_nodes.pods.translation.environment import ConfigMaps
from slinky_operator.virtual_nodes.pods.translation.pod_fields import CONTAINER

LARGEST: Final = 65_536
"""Most characters of all files of ConfigMaps: they are in the script, which Slurm keeps with the job."""

_PLAIN: Final = re.compile(r"/[A-Za-z0-9._/@+-]*", re.ASCII)
_TOKENS: Final = "serviceAccountToken"
"""A source of the volume that the API server adds to each pod."""

_MOUNTED: Final = frozenset({"name", "mountPath", "readOnly", "subPath", "recursiveReadOnly"})


@dataclass(frozen=True, slots=True)
class Volumes:
    """What an image sees of its node.

    Parameters
    ----------
    lines
        What the script does first.
    binds
        What the image sees.
    """

    lines: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()

    @property
    def needs_folder(self) -> bool:
        """Whether they are in the folder of the script."""
        return bool(self.lines)


def volumes_of(pod: Object, config_maps: ConfigMaps, shared: tuple[str, str] | None) -> Volumes:
    """Return what the image of a pod sees.

    Parameters
    ----------
    pod
        The pod.
    config_maps
        The ConfigMaps of its volumes.
    shared
        Name of the claim that nodes mount too, and where; None if there is none.

    Raises
    ------
    InvalidJob
        For a volume that is not on the nodes.
    """
    lines: list[str] = []
    sources: dict[str, str | None] = {}
    is_read_only: dict[str, bool] = {}
    size = 0
    for number, volume in enumerate(pod["spec"].get("volumes") or ()):
        path, name = f"spec.volumes[{number}]", str(volume["name"])
        kind = next((key for key, value in volume.items() if key != "name" and value is not None), "emptyDir")
        folder = f"{FOLDER}/volumes/{name}"
        if _is_token(volume):
            sources[name] = None
        elif kind == "emptyDir":
            lines.append(f"mkdir -p {folder}")
            sources[name] = folder
        elif kind == "configMap":
            files = list(_files(volume["configMap"], f"{path}.configMap", config_maps))
            size += sum(len(file) + len(text) for file, text in files)
            if size > LARGEST:
                reason = (
                    f"files of ConfigMaps have {size} characters, and a job may have {LARGEST}: use a shared volume"
                )
                raise InvalidJob(f"{path}.configMap", reason)
            lines.append(f"mkdir -p {folder}")
            lines.extend(f"printf %s {shlex.quote(text)} >{folder}/{shlex.quote(file)}" for file, text in files)
            sources[name], is_read_only[name] = folder, True
        elif kind == "persistentVolumeClaim":
            sources[name] = shlex.quote(_claimed(volume[kind], f"{path}.{kind}", shared))
            is_read_only[name] = bool(volume[kind].get("readOnly"))
        else:
            reason = "nodes of Slurm have no such volume: use emptyDir, a ConfigMap, or the claim that nodes mount too"
            raise InvalidJob(f"{path}.{kind}", reason)
    mounts = pod["spec"]["containers"][0].get("volumeMounts") or ()
    binds = [_bind(mount, f"{CONTAINER}.volumeMounts[{number}]", sources) for number, mount in enumerate(mounts)]
    return Volumes(
        tuple(lines),
        tuple(
            Bind(bind.source, bind.target, bind.is_read_only or is_read_only.get(name, False))
            for name, bind in binds
            if bind is not None
        ),
    )


def _is_token(volume: Mapping[str, Any]) -> bool:
    """Whether a volume is the one with the token of the service account: jobs get none."""
    parts = (volume.get("projected") or {}).get("sources") or ()
    return any(_TOKENS in part for part in parts)


def _files(source: Mapping[str, Any], path: str, config_maps: ConfigMaps) -> Iterator[tuple[str, str]]:
    data = config_maps.get(str(source.get("name") or ""))
    if data is None:
        if source.get("optional"):
            return
        words = f"there is no ConfigMap {source.get('name')} in this namespace: create it, and the pod again"
        raise InvalidJob(f"{path}.name", words)
    if not source.get("items"):
        yield from data.items()
        return
    for number, item in enumerate(source["items"]):
        key, file = str(item.get("key")), str(item.get("path"))
        if key not in data:
            if source.get("optional"):
                continue
            raise InvalidJob(f"{path}.items[{number}].key", f"ConfigMap {source.get('name')} has no key {key[:100]}")
        if "/" in file:
            raise InvalidJob(f"{path}.items[{number}].path", "must be a file name: folders are not made")
        yield file, data[key]


def _claimed(claim: Mapping[str, Any], path: str, shared: tuple[str, str] | None) -> str:
    name = str(claim.get("claimName") or "")
    if shared is None or shared[0] != name:
        known = "none is set" if shared is None else f"that is claim {shared[0]}"
        reason = (
            f"nodes of Slurm do not mount claim {name}: pods can use the claim that the Cluster's administrator names "
            f"in spec.jobs.virtualNodes.sharedVolume; {known}"
        )
        raise InvalidJob(f"{path}.claimName", reason)
    return shared[1]


def _bind(mount: Mapping[str, Any], path: str, sources: Mapping[str, str | None]) -> tuple[str, Bind | None]:
    for name, value in mount.items():
        if name not in _MOUNTED and value and value != "None":
            raise InvalidJob(f"{path}.{name}", "cannot be done on nodes of Slurm. Remove it")
    name = str(mount.get("name"))
    source = sources.get(name)
    if source is None:
        return name, None
    target = str(mount.get("mountPath"))
    if not _PLAIN.fullmatch(target) or ".." in target.split("/"):
        raise InvalidJob(f"{path}.mountPath", "must be an absolute path of letters, digits and any of ._@+-")
    below = str(mount.get("subPath") or "")
    if below:
        if posixpath.isabs(below) or ".." in below.split("/"):
            raise InvalidJob(f"{path}.subPath", "must stay inside the volume")
        source = f"{source}/{shlex.quote(below)}"
    return name, Bind(source, target, bool(mount.get("readOnly")))
