"""A small exporter for Prometheus: ``exporter.py PORT``, then GET /metrics. Slurm is asked once for each scrape."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from slurm_client import SlurmError, SyncSlurmClient


def metrics(slurm: SyncSlurmClient) -> Iterator[str]:
    """Give the lines of one scrape; without an answer of Slurm, ``slurm_up 0`` alone: old numbers are no numbers."""
    try:
        nodes, jobs = slurm.nodes(timeout=10), slurm.jobs(timeout=10)
    except SlurmError as error:
        print(f"no answer: {error}", file=sys.stderr)
        yield "slurm_up 0"
        return
    yield "slurm_up 1"
    for state, count in sorted(Counter(node.state.base for node in nodes).items()):
        yield f'slurm_nodes{{state="{state.lower()}"}} {count}'
    yield f"slurm_nodes_usable {sum(node.is_usable for node in nodes)}"
    yield f"slurm_cpus {sum(node.cpus for node in nodes)}"
    yield f"slurm_cpus_allocated {sum(node.alloc_cpus for node in nodes)}"
    for (state, partition), count in sorted(Counter((job.state.base, job.partition) for job in jobs).items()):
        yield f'slurm_jobs{{state="{state.lower()}",partition="{partition}"}} {count}'


def main(port: int) -> None:
    """Serve until interrupted."""
    with SyncSlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm:

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = "".join(f"{line}\n" for line in metrics(slurm)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        with ThreadingHTTPServer(("127.0.0.1", port), Page) as server:
            print(f"http://127.0.0.1:{server.server_port}/metrics", flush=True)
            server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
