"""Calls to Slurm are counted in the network of the operator's pods, which only root may enter."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import pytest
from typing_extensions import override

from tests.campaign import calls
from tests.campaign.calls import counters_of

PAGE: Final = 'slurm_operator_slurm_requests_total{code="200",operation="get_ping",result="ok"} 1e+03\n'


class _Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGE.encode() if self.path == "/metrics" else b""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def metrics() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), _Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_metrics_are_read_in_the_network_of_the_process(metrics: int) -> None:
    assert counters_of(calls.page(os.getpid(), metrics))[1]["get_ping"] == 1000.0
