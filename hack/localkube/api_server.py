"""Connections to an API server that are kept from one request to the next, with the rights of a kubeconfig.

Which requests are made is up to others: `objects` reads, `commands` writes, `execs` runs commands in containers.
"""

from __future__ import annotations

import atexit
import base64
import json
import select
import ssl
import tempfile
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT = 60.0
"""Seconds for one answer."""


class Refused(Exception):
    """The API server refused, or did not answer; the text has its words as kubectl would print them."""


class ApiServer:
    """The API server that a kubeconfig leads to; may be used by many threads.

    Parameters
    ----------
    kubeconfig
        One of a local Kubernetes: JSON, with a client certificate.

    Raises
    ------
    OSError, ValueError, LookupError
        It cannot be read, or is of another kind.
    """

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urlsplit(cluster["server"])
        self._host, self._port = str(address.hostname), address.port
        self._context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_text(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            self._context.load_cert_chain(pair)
        self._idle: list[HTTPSConnection] = []
        atexit.register(self.close)

    def close(self) -> None:
        """Close the connections that nobody uses at the moment."""
        while self._idle:
            self._idle.pop().close()

    def connection(self, timeout: float = TIMEOUT) -> HTTPSConnection:
        """Return a connection of the caller's own, that waits so many seconds."""
        return HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)

    def read(self, path: str, accept: str = "application/json") -> tuple[int, bytes]:
        """Return the status and the body that a path is answered with.

        Raises
        ------
        Refused
            There is no answer.
        """
        return self._request("GET", path, b"", {"Accept": accept}, is_repeatable=True)

    def write(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """Send a request that changes something, once, and return the status and the body of the answer.

        Raises
        ------
        Refused
            There is no answer; the request may have been served.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        return self._request(method, path, body, headers, is_repeatable=False)

    def _request(
        self, method: str, path: str, body: bytes, headers: dict[str, str], *, is_repeatable: bool
    ) -> tuple[int, bytes]:
        while (kept := self._kept()) is not None:
            try:
                return self._exchange(kept, method, path, body, headers)
            except (OSError, HTTPException) as error:
                # It may have been ended since; a new one will tell.
                if not is_repeatable:
                    raise Refused(f"Unable to connect to the server: {error!r}") from error
        try:
            return self._exchange(self.connection(), method, path, body, headers)
        except (OSError, HTTPException) as error:
            raise Refused(f"Unable to connect to the server: {error!r}") from error

    def _kept(self) -> HTTPSConnection | None:
        """Take a connection that the API server has not ended, as far as can be seen without a request."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            # Nothing is sent unasked but the end.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return None

    def _exchange(
        self, connection: HTTPSConnection, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, path, body=body or None, headers=headers)
            answer: HTTPResponse = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer.status, content


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
