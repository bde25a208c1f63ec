"""
Small OCI images with programs of a root tree, and a registry that serves them on loopback.

What it serves is just enough for ``skopeo copy docker://…``, over plain HTTP.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
PROGRAMS = {"bin/sh": "usr/bin/dash", "bin/id": "usr/bin/id", "bin/sleep": "usr/bin/sleep"}
"""Path in an image, and in the tree."""


@dataclass
class Image:
    """An image: its manifest, and all blobs by digest."""

    manifest: bytes
    blobs: dict[str, bytes] = field(default_factory=dict)

    def write(self, layout: Path) -> None:
        """Write an OCI layout with the image under the tag ``test``."""
        places = layout / "blobs" / "sha256"
        places.mkdir(parents=True)
        (layout / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
        entry = {**_descriptor(MANIFEST, self.manifest), "annotations": {"org.opencontainers.image.ref.name": "test"}}
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        for blob in (self.manifest, *self.blobs.values()):
            (places / _digest(blob).removeprefix("sha256:")).write_bytes(blob)


def image(tree: Path, command: Sequence[str], user: str = "") -> Image:
    """
    Make an image with a shell, ``id`` and ``sleep``.

    Parameters
    ----------
    tree
        Root tree that the programs are taken from, with the libraries they need.
    command
        What the image runs.
    user
        As whom, for instance ``33:33``.
    """
    content = layer(tree)
    config: dict[str, Any] = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin", "OF_IMAGE=yes"], "User": user, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [_digest(content)]},
    }
    configuration = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _descriptor(_CONFIG, configuration),
        "layers": [_descriptor(_LAYER, content)],
    }
    return Image(json.dumps(manifest).encode(), {_digest(blob): blob for blob in (configuration, content)})


@contextmanager
def registry(images: dict[str, Image]) -> Iterator[str]:
    """Serve images by name, whatever the tag; give the address of the registry."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = re.fullmatch(r"/v2/(?:([a-z-]+)/(manifests|blobs)/(\S+))?", self.path)
            name, kind, reference = found.groups() if found else ("", "", "")
            one = images.get(name or "")
            blob = b"{}" if found and not name else None
            if one is not None:
                blob = one.manifest if kind == "manifests" else one.blobs.get(reference)
            self.send_response(200 if blob is not None else 404)
            self.send_header("Content-Type", MANIFEST if kind == "manifests" else "application/octet-stream")
            self.send_header("Content-Length", str(len(blob or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(blob or b"")

        do_HEAD = do_GET  # noqa: N815 - the name is that of the base class

        @override
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def layer(tree: Path) -> bytes:
    """Make the one layer of such an image, of programs of a root tree."""
    files = {name: tree / source for name, source in PROGRAMS.items()}
    command = ["chroot", str(tree), "ldd", *(f"/{source}" for source in PROGRAMS.values())]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+\.so\S*)", listed):
        files[library.lstrip("/")] = tree / library.lstrip("/")
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name in ("proc", "dev", "sys", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        for name, source in sorted(files.items()):
            content = _inside(tree, source).read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def _inside(tree: Path, path: Path) -> Path:
    """Follow links as they are meant in the tree, whose `/lib` and `/lib64` are links too."""
    command = ["chroot", str(tree), "readlink", "-f", f"/{path.relative_to(tree)}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return tree / found.lstrip("/")


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}
