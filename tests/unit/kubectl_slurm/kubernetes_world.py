"""An API server and a kubectl for commands of the plugin: objects in a dict behind a Unix socket, Tokens made at once.

A slurmrestd is behind its Services: ``slurm_client.testing`` answers there. What a real API server does is tested in
``tests/integration/kubectl_slurm``.
"""

from __future__ import annotations

import base64
import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx
from typing_extensions import override

API: Final = "slinky.slurm.net/v1alpha1"
KUBECTL: Final = """\
#!/bin/sh
folder=$(dirname "$0")
case "$*" in *" scontrol token username=slurm "*) [ -f "$folder/scontrol" ] && exec cat "$folder/scontrol" ;; esac
for argument; do
    case "$argument" in
    --unix-socket=*)
        echo "$$" >> "$folder/proxies"
        ln -s "$folder/api" "${argument#--unix-socket=}"
        echo Starting
        exec sleep 600 ;;
    apply) exec cat ;;
    exec | patch | cordon | uncordon) [ -x "$folder/acts" ] && exec "$folder/acts" "$@" ;;
    esac
done
echo '{}'
"""

Json = dict[str, Any]


class KubernetesWorld:
    """What the API server has.

    Attributes
    ----------
    objects
        By plural and name.
    logs
        Of pods; one that has none cannot be read.
    asked
        Methods and paths, with queries.
    services
        Base URLs of what is behind the proxy of Services, by the Service's name.
    token_of
        The value of a Token of a user.
    run_pod
        What becomes of a pod that is created: its status, and its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[str, dict[str, Json]] = {}
        self.logs: dict[str, str] = {}
        self.asked: list[str] = []
        self.services: dict[str, str] = {}
        self.token_of: Callable[[str], str] = lambda user: f"jwt-{user}"
        self.run_pod: Callable[[Json], tuple[Json, str]] = lambda _: ({"phase": "Pending"}, "")
        self.kubectl = folder / "kubectl"
        self.kubectl.write_text(KUBECTL)
        self.kubectl.chmod(0o755)

    def add(self, plural: str, name: str, spec: Json | None = None, **more: Any) -> None:
        """Add an object, or replace it."""
        labels = more.pop("labels", {})
        kind = {"clusters": "Cluster", "nodesets": "NodeSet"}.get(plural, "")
        meta = {"name": name, "namespace": "slurm", "labels": labels}
        obj = {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec or {}, **more}
        self.objects.setdefault(plural, {})[name] = obj

    def acts(self, program: str) -> None:
        """Run this program of a shell where kubectl acts; it gets kubectl's arguments."""
        file = self.folder / "acts"
        file.write_text(f"#!/bin/sh\n{program}\n")
        file.chmod(0o755)

    def proxies(self) -> list[int]:
        """Process ids of all ``kubectl proxy`` that were started."""
        return [int(line) for line in (self.folder / "proxies").read_text().split()]

    def answer(self, method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        """Answer a request."""
        self.asked.append(f"{method} {path}")
        url = urlsplit(path)
        proxied = re.fullmatch(r"/api/v1/namespaces/slurm/services/http:([^:/]+):6820/proxy(/?.*)", url.path)
        if proxied:
            target = f"{self.services[proxied[1]]}{proxied[2]}"
            response = httpx.request(
                method, target, params=url.query, content=body, headers={"X-SLURM-USER-TOKEN": token}, trust_env=False
            )
            return response.status_code, response.content
        if url.path.endswith(("accessreviews", "subjectreviews")):
            return 201, b'{"status": {"allowed": true, "userInfo": {"username": "dev"}}}'
        _, _, rest = url.path.partition("/namespaces/slurm/")
        plural, _, name = rest.partition("/")
        if name.endswith("/log"):
            pod = name.removesuffix("/log")
            return (200, self.logs[pod].encode()) if pod in self.logs else refusal(500, "the container is not there")
        return self._of_objects(method, plural, name, parse_qs(url.query), body)

    def _of_objects(
        self, method: str, plural: str, name: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[int, bytes]:
        found = self.objects.setdefault(plural, {})
        if method == "POST":
            made = json.loads(body)
            return 201, json.dumps(self._made(made) if plural == "tokens" else self._put(plural, made)).encode()
        if name and name not in found:
            return refusal(404, f'{plural} "{name}" not found')
        if method == "DELETE":
            return 200, json.dumps(found.pop(name)).encode()
        if name:
            return 200, json.dumps(found[name]).encode()
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", [""])[0].split(",") if pair)
        items = [one for one in found.values() if wanted.items() <= one["metadata"]["labels"].items()]
        return 200, json.dumps({"items": items}).encode()

    def _put(self, plural: str, obj: Json) -> Json:
        """An object with a name of its own; a pod runs at once."""
        name = obj["metadata"]["name"]
        self.objects.setdefault(plural, {})[name] = obj
        if plural == "pods":
            obj["status"], self.logs[name] = self.run_pod(obj)
        return obj

    def _made(self, token: Json) -> Json:
        """A Token that the operator has answered at once."""
        made = self.objects.setdefault("tokens", {})
        name = f"{token['metadata']['generateName']}{len(self.asked)}"
        token["metadata"] |= {"name": name, "namespace": "slurm"}
        user = token["spec"]["username"]
        token["status"] = {"username": user, "conditions": [{"type": "Ready", "status": "True"}]}
        made[name] = token
        data = {"auth-token": base64.b64encode(self.token_of(user).encode()).decode()}
        self.objects.setdefault("secrets", {})[name] = {"metadata": {"name": name, "labels": {}}, "data": data}
        return token


def refusal(code: int, message: str) -> tuple[int, bytes]:
    """An error as the API server writes it."""
    return code, json.dumps({"kind": "Status", "message": message}).encode()


@contextmanager
def running(folder: Path) -> Iterator[KubernetesWorld]:
    """Run the API server until the block ends."""
    world = KubernetesWorld(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        @override
        def handle_one_request(self) -> None:
            self.client_address = ("", 0)
            # Who was interrupted reads no answer.
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        @override
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("X-SLURM-USER-TOKEN") or ""
            status, content = world.answer(self.command, self.path, body, token)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - names of http.server

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    with Server(str(folder / "api"), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield world
        finally:
            server.shutdown()
            thread.join()
