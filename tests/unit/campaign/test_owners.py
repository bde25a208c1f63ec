"""Objects lose what names their owners, and get it back as conditions of the operator say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from slinky_api import labels
from tests.campaign.lanes.actions import ACTIONS, owner_marks
from tests.campaign.lanes.keys import MADE_SECRETS, TOKEN
from tests.campaign.site.administrator import Administrator
from tests.campaign.site.site import lasting_object
from tests.campaign.site.specs import Specs
from tests.support.slurm_in_kubernetes import SlurmInKubernetes

MARKED = {"name": "slurm-auth-jwt", "labels": {labels.LABEL_CLUSTER_UID: "u1", "other": "x"}}
OWNED = {"name": TOKEN, "ownerReferences": [{"kind": "Token", "name": TOKEN, "uid": "u2"}]}
BARE = {"name": "slurm-auth-jwt", "labels": {"other": "x"}}
REFUSED = (
    "StatefulSet slurm-controller: one exists already without this Cluster's labels, and is left as it is. To see its "
    "owner: kubectl -n campaign get statefulsets slurm-controller -o yaml. If it is this Cluster's, assign it: kubectl "
    "-n campaign label --overwrite statefulsets slurm-controller app.kubernetes.io/managed-by=slurm-operator "
    "cluster.slinky.slurm.net/name=slurm cluster.slinky.slurm.net/uid=0a-1b. If it is somebody else's, create"
)


@dataclass
class Owning:
    """A Cluster with these Secrets, whose condition says this, that notes what is done."""

    secrets: tuple[Mapping[str, Any], ...] = ()
    said: str = ""
    token: str = "Issued"
    done: list[str] = field(default_factory=list)
    name: str = "slurm"
    namespace: str = "campaign"

    def get(self, kind: str, name: str = "") -> dict[str, Any]:
        if kind == "cluster":
            conditions = [{"type": "Degraded", "reason": "ChildRefused", "message": self.said}]
            return {"metadata": {"uid": "u1"}, "status": {"conditions": conditions}}
        found = [{"metadata": one} for one in self.secrets]
        return next(one for one in found if one["metadata"]["name"] == name) if name else {"items": found}

    def condition(self, kind: str, name: str, condition: str) -> dict[str, Any]:
        return {"reason": self.token}

    def kube(self, *arguments: str, timeout: float = 0) -> str:
        self.done.append(" ".join(arguments))
        return "patched\n"


def give_back(slurm: Owning) -> list[str]:
    one = cast("SlurmInKubernetes", slurm)
    return [*Administrator(cast("Any", None), one, Specs(one, "/folder")).give_owners_back()]


def test_what_names_the_owner_is_taken_off_and_told() -> None:
    for name, about, what in (
        ("slurm-auth-jwt", MARKED, f"label {labels.LABEL_CLUSTER_UID}"),
        (TOKEN, OWNED, f"its owner Token {TOKEN}"),
        ("slurm-auth-jwt", BARE, "anything that it had"),
    ):
        slurm = Owning((about,))
        said = ACTIONS["take the owner off a Secret"].do(
            cast("SlurmInKubernetes", slurm), {"kind": "secret", "name": name.replace("slurm-", "{cluster}-")}
        )
        assert said == f"patched, without {what}"
        (command,) = slurm.done
        assert command.startswith(f"patch secret {name} --type=merge ")
        metadata = json.loads(command.partition("--patch=")[2])["metadata"]
        assert metadata["ownerReferences"] is None
        assert set(metadata["labels"].values()) == {None}
        assert set(metadata["labels"]) == {labels.LABEL_CLUSTER_UID, labels.LABEL_TOKEN_UID}


def test_an_administrator_assigns_what_the_condition_names() -> None:
    slurm = Owning(said=REFUSED)
    assert give_back(slurm) == ["statefulsets slurm-controller named no owner: ChildRefused"]
    marks = f"{labels.LABEL_APP_MANAGED_BY}=slurm-operator {labels.LABEL_CLUSTER_NAME}=slurm"
    assert slurm.done == [f"label --overwrite statefulsets slurm-controller {marks} {labels.LABEL_CLUSTER_UID}=0a-1b"]


def test_a_secret_that_does_not_name_its_token_is_deleted() -> None:
    reason = "SecretNotOwned"
    slurm = Owning(({"name": TOKEN},), token=reason)
    assert give_back(slurm) == [f"Secret {TOKEN} did not name its Token"]
    assert slurm.done == [f"delete secret {TOKEN} --ignore-not-found"]
    # It was made again, and the condition is older.
    again = Owning((OWNED,), token=reason)
    assert give_back(again) == again.done == []


def test_secrets_of_keys_are_assigned_and_others_are_left() -> None:
    slurm = Owning((BARE, {"name": "slurm-keys"}, OWNED, {**MARKED, "name": "slurm-auth-copy"}))
    assert give_back(slurm) == ["Secret slurm-auth-jwt named no owner"]
    assert slurm.done == [f"label secret slurm-auth-jwt {labels.LABEL_CLUSTER_UID}=u1"]


def test_an_object_of_nobody_is_another_one_than_before() -> None:
    assert lasting_object("secrets", MARKED) == "secrets slurm-auth-jwt"
    assert lasting_object("secrets", BARE) == "secrets slurm-auth-jwt of nobody"
    assert owner_marks(OWNED) == [f"its owner Token {TOKEN}"]


def test_every_secret_of_the_operator_can_lose_its_owner() -> None:
    assert ACTIONS["take the owner off a Secret"].choices["name"] == MADE_SECRETS
