"""A real Prometheus on this machine, which scrapes the operator through the API server, and its promtool."""

from __future__ import annotations

import base64
import re
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from hack.installing.operator import NAMESPACE
from hack.localkube.kubectl import Kubectl, wait_for
from hack.machine import ports

ALERTS = Path(__file__).parents[2] / "helm" / "slurm-operator" / "files" / "alerts.yaml"
PATIENCE = 120.0
PROMTOOL = 600.0
"""Seconds for one call of promtool, which takes 17 s of a processor to try all alerts for an hour."""
EARLIER = {"SlurmOperatorIsDeaf": "SlurmOperatorWatchSilent", "SlurmExporterBlind": "SlurmExporterStale"}
"""Names of alerts that fire for one release more, with those of today."""


def rules() -> dict[str, dict[str, Any]]:
    """The alerts of the chart, by name."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def rendered(text: str, labels: Mapping[str, str], value: float) -> str:
    """A template of an annotation as Prometheus renders it, as far as ours go."""
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels.get(found[1], ""), text)
    text = re.sub(r'\{\{ \$value \| printf "(%\.\df)" \}\}', lambda found: found[1] % value, text)
    return text.replace("{{ $value }}", f"{value:g}")


def promtool(*arguments: str) -> None:
    """Run promtool; its words are the error if it fails."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, timeout=PROMTOOL)
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """One that runs; queries raise what it answers with."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer of its API."""
        with httpx.Client(trust_env=False, timeout=30) as http:
            found = http.get(f"{self.url}/api/v1/{path}", params=query).json()
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an expression now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def alerts(self) -> dict[str, list[dict[str, Any]]]:
        """What is pending or firing, by name of the alert."""
        found: dict[str, list[dict[str, Any]]] = {}
        for alert in self.ask("alerts")["alerts"]:
            found.setdefault(alert["labels"]["alertname"], []).append(alert)
        return found


@contextmanager
def running(
    kubectl: Kubectl, folder: Path, pods: Sequence[str], services: Mapping[str, str] | None = None
) -> Iterator[Prometheus]:
    """Scrape these pods of the operator and Services by their namespaces, and evaluate the chart's alerts.

    As a ServiceMonitor does, samples of a Service get its namespace as a label.
    """
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = {"ca": cluster["certificate-authority-data"], "cert": user["client-certificate-data"]}
    for name, data in {**tls, "key": user["client-key-data"]}.items():
        (folder / name).write_bytes(base64.b64decode(data))
    (folder / "key").chmod(0o600)
    server = urllib.parse.urlsplit(cluster["server"])
    scrapes = [
        {
            "job_name": pod,
            "scheme": server.scheme,
            "metrics_path": f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics",
            "tls_config": {f"{name}_file": str(folder / name) for name in ("ca", "cert", "key")},
            "static_configs": [{"targets": [server.netloc], "labels": {"pod": pod}}],
        }
        for pod in pods
    ]
    scrapes += [
        {
            **scrapes[0],
            "job_name": f"{namespace}-{service}",
            "metrics_path": f"/api/v1/namespaces/{namespace}/services/{service}:8080/proxy/metrics",
            "static_configs": [{"targets": [server.netloc], "labels": {"namespace": namespace}}],
        }
        for namespace, service in (services or {}).items()
    ]
    settings = {
        # A scrape may take as long as there is between two; one that fails ends all series.
        "global": {"scrape_interval": "5s", "scrape_timeout": "5s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": scrapes,
    }
    with _started(folder, settings, len(scrapes)) as prometheus:
        yield prometheus


@contextmanager
def scraping(folder: Path, port: int) -> Iterator[Prometheus]:
    """Scrape one page on loopback every second, without alerts."""
    job = {"job_name": "page", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    settings = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [job]}
    with _started(folder, settings, 1) as prometheus:
        yield prometheus


@contextmanager
def _started(folder: Path, settings: Mapping[str, Any], pages: int) -> Iterator[Prometheus]:
    """Run one until it has scraped so many pages, and end it."""
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    (port,) = ports.hold(1)
    url = f"http://127.0.0.1:{port}"
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        prometheus = Prometheus(url)
        try:
            wait_for("Prometheus' first samples of each", lambda: _scrapes(prometheus, pages, process), PATIENCE)
            yield prometheus
        finally:
            process.terminate()
            process.wait()


def _scrapes(prometheus: Prometheus, number: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "Prometheus has ended"
    try:
        return len(prometheus.query("up == 1")) == number
    except (httpx.TransportError, ValueError):
        # While it reads its storage it says 503, in plain words.
        return False
