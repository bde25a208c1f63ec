"""What server and follower agree on: one request, and its answers.

``GET /output?offset=N&wait=S`` with ``Authorization: Bearer TOKEN`` asks for a file from byte N on, and waits up to S
seconds if there is nothing yet. The connection stays open for the next request.

===== ==================================================================================
200   bytes from N on, as many as there are, at most `MAX_CHUNK`
204   nothing after byte N
400   not such a request
403   no access, one line says why
404   no such file; it may come
416   the file is shorter than N: it was truncated
503   too many connections, or no answer from the file system
===== ==================================================================================

``ETag`` tells files of the same name apart. An error has one line of text.

``GET /volumes`` needs no token: it tells in JSON how much room the file systems of own folders have, as the agent
beside slurmctld does.

``POST /files`` with ``Upgrade: slurm-files`` asks for a copy, as its token says. After ``101`` the connection carries
frames (`copies.wire`) and ends with the copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

from slinky_operator.pod_programs.joblogs.tokens import MAX_TOKEN

PATH: Final = "/output"
FILES_PATH: Final = "/files"
VOLUMES_PATH: Final = "/volumes"
PROOF: Final = "Proof"
"""Header by which the server shows that it has the key."""

RETRY: Final = "Retry-After"
RETRY_SECONDS: Final = 10
"""Header of an answer to a caller whose share is used up, and its value."""

UPGRADE: Final = "slurm-files"
"""What the connection of a copy is turned into."""

MAX_CHUNK: Final = 16 * 1024 * 1024
"""Bytes of one answer."""

MAX_WAIT: Final = 20.0
"""Seconds that a server waits for more bytes."""

MAX_HEAD: Final = MAX_TOKEN + 4096
"""Bytes of a request."""

MAX_OFFSET: Final = 2**63 - 1
MAX_LINE: Final = 300
"""Characters of an error."""

_SIZE: Final = re.compile("the file has ([0-9]{1,19}) bytes", re.ASCII)
_NONCE: Final = re.compile("[0-9a-f]{16,64}", re.ASCII)
END_OF_HEAD: Final = b"\r\n\r\n"
_BEARER: Final = "bearer "


class BadRequest(Exception):
    """It is not a request that is understood."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks for."""

    token: str
    offset: int = 0
    wait: float = 0.0
    is_copy: bool = False
    nonce: str = ""
    """Of a copy: what the server's proof is for."""
    is_about_volumes: bool = False


def parse(head: bytes) -> Request:
    """Read the head of a request.

    Raises
    ------
    BadRequest
        It is not understood.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    try:
        url = urlsplit(words[1])
        asked = parse_qs(url.query, max_num_fields=8)
        offset, wait = int(asked.get("offset", ["0"])[0]), float(asked.get("wait", ["0"])[0])
    except (ValueError, IndexError):
        raise BadRequest("offset and wait must be numbers") from None
    if not 0 <= offset <= MAX_OFFSET or not wait >= 0:
        raise BadRequest("offset and wait must not be negative")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if (words[0], url.path) == ("GET", VOLUMES_PATH):
        return Request("", is_about_volumes=True)
    is_copy = (words[0], url.path, fields.get("upgrade")) == ("POST", FILES_PATH, UPGRADE)
    if not is_copy and (words[0] != "GET" or url.path != PATH):
        raise BadRequest(f"ask for GET {PATH}?offset=N&wait=SECONDS")
    authorization = fields.get("authorization", "")
    if not authorization.lower().startswith(_BEARER):
        raise BadRequest("a token is needed: Authorization: Bearer TOKEN")
    nonce = fields.get("nonce", "")
    if is_copy and not _NONCE.fullmatch(nonce):
        raise BadRequest("a copy needs a nonce")
    return Request(authorization[len(_BEARER) :].strip(), offset, min(wait, MAX_WAIT), is_copy, nonce)


def copy_request(host: str, token: str, nonce: str) -> bytes:
    """Make the head of a request for a copy."""
    lines = [f"POST {FILES_PATH} HTTP/1.1", f"Host: {host}", "Connection: Upgrade", f"Upgrade: {UPGRADE}"]
    lines.append(f"Nonce: {nonce}")
    return "\r\n".join([*lines, f"Authorization: Bearer {token}", "", ""]).encode("ascii", errors="replace")


def turned(proof: str) -> bytes:
    """Make the head after which a connection carries a copy."""
    status = HTTPStatus.SWITCHING_PROTOCOLS
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Connection: Upgrade", f"Upgrade: {UPGRADE}"]
    lines.append(f"{PROOF}: {proof}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def volumes(found: Mapping[str, object]) -> bytes:
    """Make the whole answer about volumes."""
    content = json.dumps({"volumes": found}).encode()
    return head(HTTPStatus.OK, len(content), kind="application/json") + content


def head(status: HTTPStatus, length: int, *, tag: str = "", kind: str = "application/octet-stream") -> bytes:
    """Make the head of an answer; `kind` is that of content, not of an error."""
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    if status is not HTTPStatus.NO_CONTENT:
        of_content = kind if status is HTTPStatus.OK else "text/plain; charset=utf-8"
        lines += [f"Content-Type: {of_content}", f"Content-Length: {length}"]
    if tag:
        lines.append(f'ETag: "{tag}"')
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def too_far(size: int) -> str:
    """The line of an answer about a file that is shorter than the offset."""
    return f"the file has {size} bytes"


def size_in(line: str) -> int | None:
    """The size that such a line names; None if it names none."""
    found = _SIZE.fullmatch(line)
    return int(found[1]) if found else None


def error(status: HTTPStatus, line: str) -> bytes:
    """Make a whole answer of one line; a caller whose share is used up reads when it may ask again."""
    text = line.replace("\n", " ")[:MAX_LINE].encode(errors="replace") + b"\n"
    if status is not HTTPStatus.TOO_MANY_REQUESTS:
        return head(status, len(text)) + text
    # Pods of earlier versions know no other status for it.
    made = head(HTTPStatus.SERVICE_UNAVAILABLE, len(text))
    return made.removesuffix(END_OF_HEAD) + f"\r\n{RETRY}: {RETRY_SECONDS}".encode() + END_OF_HEAD + text
