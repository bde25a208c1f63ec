"""What administrators do now and then, as data: keys and tokens are rotated, Slurm and the operator upgraded."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

from hack.installing.operator import CHART, RELEASE, HelmFailed, Installation
from slinky_api import labels
from tests.campaign.lanes.actions import SOON
from tests.campaign.lanes.keys import MADE_SECRETS, STEPS, next_set
from tests.support import loaded_images
from tests.support.slurm_in_kubernetes import SlurmInKubernetes

KEYS: Final = "slurm-keys"
"""Secret with the key set of auth/slurm, which the Cluster names."""

KEY_SET: Final = "slurm.jwks"
JWT: Final = "jwt.key"
UPGRADE: Final = "upgrade Slurm"
OPERATOR_IMAGE: Final = "localhost/slinky/slurm-operator"
TAGS: Final = ("dev", "next")
ROTATE: Final = "rotate the key of Slurm"
LOSE: Final = "lose a Secret"
HARM: Final = "harm an object of slurmctld's"

HARMS: Final[Mapping[str, Sequence[str]]] = {
    "both ConfigMaps": ("delete", "configmap", "{name}-config", "{name}-config-good"),
    "its StatefulSet, not its pod": ("delete", "statefulset", "{name}-controller", "--cascade=orphan"),
    "the label of its StatefulSet": (
        "label", "--overwrite", "statefulset", "{name}-controller", f"{labels.LABEL_APP_MANAGED_BY}=somebody",
    ),
    "a file too many": (
        "patch", "configmap", "{name}-config", "--type=merge", '--patch={{"data": {{"added.conf": "#"}}}}',
    ),
}  # fmt: skip
"""What becomes of it, with the arguments of kubectl."""

EACH: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    ROTATE: tuple({"step": one} for one in STEPS),
    LOSE: tuple({"secret": one} for one in MADE_SECRETS),
    HARM: tuple({"harm": one} for one in HARMS),
}
"""Kinds that are several: what is different in each of them."""


class Upkept(Protocol):
    """What is kept up."""

    @property
    def slurm(self) -> SlurmInKubernetes: ...

    @property
    def operator(self) -> Installation: ...

    def upgrade_slurm(self) -> str:
        """Name images of the newest Slurm everywhere; returns what was said."""
        ...


@dataclass(frozen=True, slots=True)
class Upkeep:
    """One kind of upkeep.

    Attributes
    ----------
    do
        Does it, with the values that were drawn; returns what was said.
    choices
        Values to draw from, by name.
    weight
        How often, compared with others.
    """

    do: Callable[[Upkept, Mapping[str, Any]], str]
    choices: Mapping[str, tuple[Any, ...]]
    weight: int = 2

    def draw(self, random: Random) -> dict[str, Any]:
        drawn: dict[str, Any] = {name: random.choice(choices) for name, choices in self.choices.items()}
        # Of a key that protects nothing: the same seed rotates to the same keys.
        return {**drawn, "key": base64.b64encode(random.randbytes(48)).decode()}


def _rotate_slurm(site: Upkept, values: Mapping[str, Any]) -> str:
    slurm = site.slurm
    text = base64.b64decode(slurm.get("secret", KEYS)["data"][KEY_SET]).decode()
    try:
        after = next_set(text, values["step"], values["key"], time.time())
    except ValueError:
        return "the set was made unreadable before"
    return write_secret(slurm, KEYS, KEY_SET, after)


def _rotate_jwt(site: Upkept, values: Mapping[str, Any]) -> str:
    return write_secret(site.slurm, f"{site.slurm.name}-auth-jwt", JWT, values["key"])


def _lose(site: Upkept, values: Mapping[str, Any]) -> str:
    name = values["secret"].format(cluster=site.slurm.name)
    return site.slurm.kube("delete", "secret", name, timeout=SOON)


def _harm(site: Upkept, values: Mapping[str, Any]) -> str:
    name = site.slurm.name
    return site.slurm.kube(*(one.format(name=name) for one in HARMS[values["harm"]]), timeout=SOON)


def _upgrade_slurm(site: Upkept, values: Mapping[str, Any]) -> str:
    return site.upgrade_slurm()


def _upgrade_operator(site: Upkept, values: Mapping[str, Any]) -> str:
    """Another image, with another setting; helm waits for nothing, as a pipeline does that goes on."""
    loaded_images.tag(site.operator.cluster, f"{OPERATOR_IMAGE}:dev", f"{OPERATOR_IMAGE}:next")
    settings = (f"--set-string=image.tag={values['tag']}", f"--set=registrationPatience={values['patience']}")
    try:
        return site.operator.helm("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", *settings)
    except HelmFailed as error:
        return f"refused: {error}"


def write_secret(slurm: SlurmInKubernetes, name: str, key: str, text: str) -> str:
    """Write one value of a Secret."""
    body = json.dumps({"data": {key: base64.b64encode(text.encode()).decode()}})
    return slurm.kube("patch", "secret", name, "--type=merge", f"--patch={body}", timeout=SOON)


UPKEEP: Final[Mapping[str, Upkeep]] = {
    ROTATE: Upkeep(_rotate_slurm, {"step": ("add", *STEPS)}, 4),
    "rotate the key of JWTs": Upkeep(_rotate_jwt, {}, 3),
    LOSE: Upkeep(_lose, {"secret": MADE_SECRETS}),
    HARM: Upkeep(_harm, {"harm": tuple(HARMS)}),
    # Only where it is dealt: it needs a site with the older release.
    UPGRADE: Upkeep(_upgrade_slurm, {}, 0),
    "upgrade the operator": Upkeep(_upgrade_operator, {"tag": TAGS, "patience": (120, 300)}, 3),
}
