"""Programs that call slurmrestd with the token of a `Token`, as long as a test runs."""

from __future__ import annotations

import base64
import threading
import time
from typing import Any, Self

import httpx

from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.slurm_in_kubernetes import PATIENCE, SlurmInKubernetes

KIND = "tokens.slinky.slurm.net"


class Program:
    """Calls slurmrestd as long as it runs, with what is in the Secret of a Token; it never tries a call again."""

    def __init__(self, slurm: SlurmInKubernetes, secret: str, url: str) -> None:
        self.slurm, self.secret, self.url = slurm, secret, url
        self.answers: list[tuple[str, int, str, float]] = []
        """Of each call the token, the status, what was wrong, and when it ended (monotonic seconds)."""
        self.error: BaseException | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(PATIENCE)

    @property
    def tokens(self) -> int:
        """How many tokens were used."""
        if self.error is not None:
            raise self.error
        return len({used for used, _, _, _ in self.answers})

    def ask(self, http: httpx.Client, token: str) -> httpx.Response:
        """Make one call."""
        return http.get("/slurm/v0.0.42/nodes/", headers={"X-SLURM-USER-TOKEN": token})

    def _run(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False) as http:
                while not self._end.wait(0.2):
                    token = value(self.slurm, self.secret)
                    answer = self.ask(http, token)
                    wrong = "" if answer.status_code == 200 else answer.text[:300]
                    self.answers.append((token, answer.status_code, wrong, time.monotonic()))
        except BaseException as error:  # noqa: BLE001 - raised where the test looks
            self.error = error


def value(slurm: SlurmInKubernetes, secret: str, namespace: str = "") -> str:
    """What a Secret has as its token; empty if it has none."""
    found = slurm.kubectl.get("secret", secret, f"--namespace={namespace or slurm.namespace}")
    return base64.b64decode((found.get("data") or {}).get("auth-token", "")).decode()


def token(slurm: SlurmInKubernetes, name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    """Return a Token of a Cluster."""
    ref = {"name": slurm.name, "namespace": slurm.namespace}
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Token",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterRef": ref, **spec},
    }


def wait_reason(kubectl: Kubectl, namespace: str, name: str, reason: str) -> str:
    """Wait for a reason of the condition Ready, and return its message."""
    message = ""

    def said() -> bool:
        nonlocal message
        status = kubectl.get(KIND, name, f"--namespace={namespace}").get("status") or {}
        found = {one["type"]: one for one in status.get("conditions") or ()}.get("Ready", {})
        message = str(found.get("message"))
        return bool(found.get("reason") == reason)

    wait_for(f"Token {name} {reason}", said, PATIENCE)
    return message
