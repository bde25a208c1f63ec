"""One method per verb of the Kubernetes API, over dictionaries.

Objects go in and come out as JSON dictionaries: no typed model stands between the operator and fields that a newer
Kubernetes or a user has added. Every write passes the write fence first. Repeating is done here only where it cannot
do harm (`transport`); everything else is raised, and the controller loop comes again.
"""

from __future__ import annotations

from slinky_operator.kube.reading import Reading
from slinky_operator.kube.writing import Writing


class KubeClient(Reading, Writing):
    """The Kubernetes API over dictionaries; how one is made, `Transport` says."""
