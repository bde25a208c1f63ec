"""The kubelet API as long as the process runs: the port, its certificate, and the authority of its callers.

What is mounted and the authority in the API server are looked at again and again, in a thread; connections that are
open keep what they have begun with. A certificate that cannot be used any more leaves the one before in use.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from slinky_operator.kube.errors import KubeError
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.runtime import threads
from slinky_operator.virtual_nodes.kubelet import certificate
from slinky_operator.virtual_nodes.kubelet.answers import Answers
from slinky_operator.virtual_nodes.kubelet.certificate import ENDS_SOON, Pair, UnusableAuthority, UnusableCertificate
from slinky_operator.virtual_nodes.kubelet.listener import Listener

logger = logging.getLogger(__name__)

CA_NAMESPACE, CA_CONFIG_MAP, CA_KEY = "kube-system", "extension-apiserver-authentication", "client-ca-file"
"""Where the API server publishes the authority of its client certificates."""

LOOK_S: Final = 30.0
"""Seconds between looks at the certificate and the authority."""

_KEY: Final = ("", "kubelet API")

_MOUNTED: Final = "the Secret in virtualNodes.certificateSecret of the operator's chart"
"""Where a mounted certificate comes from."""

SAY_AGAIN_S: Final = 3600.0
"""Seconds until a problem that stays is said again."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What the port is opened with.

    Parameters
    ----------
    host, port
        Where to listen: on all addresses without a host.
    certificate_folder
        With tls.crt and tls.key; None to make a certificate.
    client_ca
        File with the authority of client certificates; None for the one that the API server publishes.
    addresses
        Of this pod, for a certificate that is made here.
    """

    host: str = ""
    port: int = 0
    certificate_folder: Path | None = None
    client_ca: Path | None = None
    addresses: tuple[str, ...] = ()


class KubeletApi:
    """The kubelet API of all virtual Nodes.

    Parameters
    ----------
    serving
        What the port is opened with.
    answers
        What answers requests.
    kube
        The API server.
    tell
        Takes a problem that an administrator should see, in one sentence; it is logged, too.
    ends
        Takes when the certificate ends, in seconds since the epoch.
    now
        The wall clock.
    """

    def __init__(
        self,
        serving: Serving,
        answers: Answers,
        kube: Getter,
        *,
        tell: Callable[[str], None] = lambda _: None,
        ends: Callable[[float], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._serving = serving
        self._kube = kube
        self._tell = tell
        self._ends = ends
        self._now = now
        self._listener = Listener(answers.answer, self._current, host=serving.host, port=serving.port)
        self._context: ssl.SSLContext | None = None
        self._made_of: tuple[str, str] | None = None
        self._pair: Pair | None = None
        self._authority = ""
        self._said: dict[str, datetime] = {}

    @property
    def port(self) -> int:
        """Where it listens, once it runs."""
        return self._listener.port

    async def run(self) -> None:
        """Serve until it is cancelled.

        Raises
        ------
        OSError
            The port is in use.
        """
        # Made before the first pause: at its end, kopf cancels all tasks that are younger than itself.
        looking = asyncio.create_task(self._look_again(), name="certificate of virtual Nodes")
        try:
            await self.look()
            self._listener.listen()
            logger.info("kubelet API of virtual Nodes on port %d", self.port)
            await self._listener.run()
        finally:
            _ = looking.cancel()

    def _current(self) -> ssl.SSLContext:
        if self._context is None:
            raise OSError("there is no certificate")
        return self._context

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except Exception:
                # A bug; what is in use stays, and the look is repeated.
                logger.exception("kubelet API: the certificate was not looked at")

    async def look(self) -> None:
        """Read the certificate and the authority, and use what has changed."""
        problems: list[str] = []
        try:
            self._pair = await threads.CERTIFICATES.run(_KEY, self._read_pair)
        except UnusableCertificate as error:
            problems.append(_unusable(error))
            if self._pair is None:
                # kubectl logs works where the API server does not verify; the sentence says what is wrong.
                self._pair = certificate.self_signed(self._serving.addresses, self._now())
        try:
            self._authority = await self._read_authority()
        except (UnusableCertificate, KubeError) as error:
            problems.append(f"the authority of the API server's client certificate: {error}")
        pair = self._pair
        if self._made_of != (pair.digest, self._authority):
            try:
                self._context = await threads.CERTIFICATES.run(_KEY, certificate.context, pair, self._authority)
                self._made_of = pair.digest, self._authority
                self._ends(pair.ends.timestamp())
            except UnusableAuthority as error:
                problems.append(str(error))
            except UnusableCertificate as error:
                problems.append(_unusable(error))
                if self._context is None:
                    self._context = await threads.CERTIFICATES.run(_KEY, self._stand_in, self._authority)
        if not pair.is_own and pair.ends - self._now() < ENDS_SOON:
            verb, fails = ("ends", "will fail") if pair.ends > self._now() else ("ended", "fails")
            problems.append(
                f"the certificate of virtual Nodes {verb} {pair.ends:%Y-%m-%dT%H:%M:%SZ}, and kubectl logs {fails} "
                f"where the API server verifies it: renew {_MOUNTED}"
            )
        self._say(problems)

    def _say(self, problems: list[str]) -> None:
        """Say what is new, or has not been said for long."""
        now = self._now()
        self._said = {problem: when for problem, when in self._said.items() if problem in problems}
        for problem in problems:
            said = self._said.get(problem)
            if said is None or (now - said).total_seconds() >= SAY_AGAIN_S:
                self._said[problem] = now
                logger.warning("kubelet API: %s", problem)
                self._tell(problem)

    def _stand_in(self, authority: str) -> ssl.SSLContext:
        """What connections are accepted with as long as no mounted pair has been of use."""
        return certificate.context(certificate.self_signed(self._serving.addresses, self._now()), authority)

    def _read_pair(self) -> Pair:
        folder, known = self._serving.certificate_folder, self._pair
        if folder is not None:
            return certificate.read_pair(folder)
        if known is not None and known.ends - self._now() >= ENDS_SOON:
            return known
        return certificate.self_signed(self._serving.addresses, self._now())

    async def _read_authority(self) -> str:
        """PEM of the authorities; empty if the API server publishes none."""
        path = self._serving.client_ca
        if path is not None:
            return (await threads.CERTIFICATES.run(_KEY, certificate.read_file, path)).decode("ascii", errors="replace")
        found = await self._kube.get(CONFIGMAPS, CA_CONFIG_MAP, CA_NAMESPACE)
        return str((found.get("data") or {}).get(CA_KEY) or "")[: certificate.MAX_BYTES]


def _unusable(error: UnusableCertificate) -> str:
    """What is said of a mounted pair that cannot be read, or used."""
    return (
        f"the certificate of virtual Nodes: {error}. The one before stays in use, or one made here: correct {_MOUNTED}"
    )
