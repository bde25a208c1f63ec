"""All that can go wrong, as one tree: each error says what happened, to what, and what to do.

::

    PluginError
    ├── KubectlFailed        kubectl is missing, or could not start
    ├── KubernetesError      the API server refused or failed
    │   ├── MissingRight     ... since the user may not do it
    │   ├── ObjectNotFound   ... since there is no such object
    │   └── KindMissing      ... since it does not serve the kind
    ├── NoToken              there is no token for slurmrestd
    ├── NoCluster            no Cluster is there, or none that the command is for
    ├── SeveralClusters      several, and none is named
    └── Refused              a command does not do what it was asked
"""

from __future__ import annotations

import shlex
from typing import ClassVar, Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
FORBIDDEN: Final = 4
NOT_FOUND: Final = 5
INTERRUPTED: Final = 130

EXIT_CODES: Final = """\b
Exit codes:
    0  done
    1  refused or failed; of verify and preflight: something is not as it should be
    2  wrong command line
    3  the API server, slurmrestd or slurmctld cannot be reached
    4  a right is missing, or there is no token
    5  there is no such Cluster, node, job or other object
  130  interrupted
"""


class PluginError(Exception):
    """A command could not do what it was asked."""

    code: ClassVar[int] = FAILED


class KubectlFailed(PluginError):
    """kubectl is missing, or has ended."""

    code = UNREACHABLE


class KubernetesError(PluginError):
    """The API server refused a request, or failed."""


class ObjectNotFound(KubernetesError):
    """There is no such object."""

    code = NOT_FOUND


class KindMissing(KubernetesError):
    """The API server does not serve a kind."""

    code = NOT_FOUND

    def __init__(self, resource: str) -> None:
        super().__init__(
            f"Kubernetes does not know {resource}: the operator's CRDs are not installed, or are older than this"
            " program. Install or upgrade the chart slurm-operator"
        )


class MissingRight(KubernetesError):
    """The user may not do something.

    Parameters
    ----------
    verb, resource, namespace
        What, e.g. ``get``, ``services/proxy`` or ``clusters.slinky.slurm.net``, and where.
    user
        Who, as the API server knows them; empty if it did not say.
    role
        A ClusterRole of Kubernetes that has the right.
    context
        Of the kubeconfig, if the user has named one.
    """

    code = FORBIDDEN

    def __init__(
        self, verb: str, resource: str, namespace: str, user: str = "", *, role: str = "edit", context: str = ""
    ) -> None:
        self.verb, self.resource, self.namespace = verb, resource, namespace
        subject = _subject(user)
        super().__init__(
            f"{f'user {user!r}' if user else 'you'} may not {verb} {resource} in namespace {namespace!r}. Ask an"
            f" administrator of the Kubernetes cluster for the role {role!r} in this namespace:"
            f" kubectl create rolebinding slurm-{role} --clusterrole={role} {subject} --namespace={namespace}"
            f"{f' --context={shlex.quote(context)}' if context else ''}"
        )


def _subject(user: str) -> str:
    if user.startswith("system:serviceaccount:"):
        return f"--serviceaccount={shlex.quote(user.removeprefix('system:serviceaccount:'))}"
    return f"--user={shlex.quote(user or 'NAME')}"


class NoToken(PluginError):
    """There is no token for slurmrestd."""

    code = FORBIDDEN


class NoCluster(PluginError):
    """No Cluster is there, or none that a command is for."""

    code = NOT_FOUND


class SeveralClusters(PluginError):
    """Several Clusters are there, and it is not clear which one is meant."""

    code = NOT_FOUND


class Refused(PluginError):
    """A command does not do what it was asked."""
