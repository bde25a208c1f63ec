"""A registry of images beside slurmd, for nodes that fetch images and have no other to fetch from."""

from __future__ import annotations

from typing import Any, Final

OPERATOR_IMAGE: Final = "localhost/slinky/slurm-operator:dev"
REGISTRY: Final = "127.0.0.1:5000"

SERVER: Final = """\
import http.server, json, pathlib, re
ROOT = pathlib.Path("/images")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        found = re.fullmatch(r"/v2/(?:([a-z]+)/(manifests|blobs)/([a-z0-9:]+))?", self.path)
        name, kind, reference = found.groups() if found else (None, None, None)
        body = b"{}" if found and not name else None
        if kind == "manifests" and not reference.startswith("sha256:"):
            listed = json.loads((ROOT / name / "index.json").read_text())["manifests"]
            tags = {one["annotations"]["org.opencontainers.image.ref.name"]: one["digest"] for one in listed}
            reference = tags.get(reference, "")
        if name and reference:
            file = ROOT / name / "blobs" / reference.replace(":", "/")
            body = file.read_bytes() if file.is_file() else None
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", MANIFEST if kind == "manifests" else "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")
    do_HEAD = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 5000), Handler).serve_forever()
"""
"""A registry, just enough for skopeo to fetch from, that serves OCI layouts; beside slurmd, since there is no other."""

PROGRAMS: Final = """\
for program in /bin/sh /bin/id; do
  for file in $program $(ldd $program | grep -o '/lib[^ ]*'); do
    mkdir -p $root${file%/*}
    cp --dereference $file $root$file
  done
done
"""
"""Copies a shell and its libraries from the node into the root of an image; its paths have no blanks."""

IMAGE: Final = f"""\
cd /images
umoci init --layout sample
umoci new --image sample:test
umoci unpack --rootless --image sample:test bundle
root=bundle/rootfs
{PROGRAMS}umoci repack --image sample:test bundle
umoci config --image sample:test --config.cmd /bin/sh --config.cmd -c --config.cmd "$1" --config.env OF_IMAGE=yes
rm -rf bundle
chmod -R a+rX sample
"""
"""An image with a shell, whose command is the first argument."""

SAMPLE: Final = f"{REGISTRY}/sample:test"
"""The image, as jobs name it."""

TRUSTED: Final = f'[[registry]]\nlocation = "{REGISTRY}"\ninsecure = true\n'
"""Key `local.conf` of the ConfigMap of `beside_slurmd`."""


def beside_slurmd(config_map: str, output: str) -> dict[str, Any]:
    """Template of a NodeSet: volumes of the node, and a registry beside slurmd.

    Parameters
    ----------
    config_map
        Has `TRUSTED`.
    output
        The claim with the output of jobs.
    """
    site = {"name": "site", "configMap": {"name": config_map, "items": [{"key": "local.conf", "path": "local.conf"}]}}
    shared = {"name": "job-output", "persistentVolumeClaim": {"claimName": output}}
    images = {"name": "images", "mountPath": "/images"}
    trusted = {"name": "site", "mountPath": "/etc/containers/registries.conf.d/local.conf", "subPath": "local.conf"}
    registry = {
        "name": "registry",
        "image": OPERATOR_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python", "-c", SERVER],
        "volumeMounts": [{**images, "readOnly": True}],
    }
    slurmd = {"name": "slurmd", "volumeMounts": [images, trusted]}
    volumes = [site, shared, {"name": "images", "emptyDir": {}}]
    return {"spec": {"volumes": volumes, "containers": [slurmd, registry]}}
