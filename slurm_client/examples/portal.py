"""
A small portal: each user acts with a token of their own, and the portal has none.

``portal.py PORT``; GET /jobs and POST /cancel?id=7 with ``Authorization: Bearer TOKEN``. What a user may do is decided
by Slurm, never here.
"""

import json
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from slurm_client import SyncSlurmClient, errors, to_dict

STATUS = (
    (errors.InvalidArgument, 400),
    (errors.Unauthorized, 401),
    (errors.PermissionDenied, 403),
    (errors.NotFound, 404),
    (errors.Unreachable, 503),
)
"""Statuses for browsers; everything else is 502."""


class Portal(BaseHTTPRequestHandler):
    """One request of one user."""

    def do_GET(self) -> None:
        """Answer /jobs."""
        self.answer(urlsplit(self.path).path == "/jobs", lambda slurm: [to_dict(job) for job in slurm.jobs()])

    def do_POST(self) -> None:
        """Answer /cancel."""
        url = urlsplit(self.path)
        (job,) = parse_qs(url.query).get("id", [""])[:1]

        def cancel(slurm: SyncSlurmClient) -> object:
            slurm.cancel_job(job)
            return {"cancelled": job}

        self.answer(url.path == "/cancel", cancel)

    def answer(self, known: bool, ask: Callable[[SyncSlurmClient], object]) -> None:
        """Ask Slurm with the user's token, and write what came of it."""
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        status: int = 404
        body: object = {"error": "there is no such page"}
        if kind != "Bearer" or not token:
            status, body = 401, {"error": "log in first"}
        elif known:
            try:
                with SyncSlurmClient(os.environ["SLURMRESTD_URL"], token, timeout=20) as slurm:
                    status, body = 200, ask(slurm)
            except errors.SlurmError as error:
                status = next((code for each, code in STATUS if isinstance(error, each)), 502)
                body = {"error": error.message}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main(port: int) -> None:
    """Serve until interrupted."""
    with ThreadingHTTPServer(("127.0.0.1", port), Portal) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
