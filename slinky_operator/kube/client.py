"""One method per verb of the Kubernetes API, with objects as dictionaries.

Objects are JSON dictionaries: no typed model drops fields that a newer Kubernetes or a user has added. Every write
passes the write fence first. Requests are repeated here only if that is safe (`transport`); all other errors are
raised, and the controller loop retries.
"""

from __future__ import annotations

from slinky_operator.kube.calls.reading import Reading
from slinky_operator.kube.calls.writing import Writing


class KubeClient(Reading, Writing):
    """The Kubernetes API over dictionaries; how one is made, `Transport` says."""
