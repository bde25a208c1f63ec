"""What is used of the package `kubernetes`: how to find and refresh credentials.

By itself the package imports all of its two clients, with three HTTP libraries, which took each start of the operator a
tenth of its CPU time; kopf imports it too, if it finds it. Here its two outer packages are known without their own
code, so that only modules which somebody names are imported. It has to be imported before kopf, whose import would
otherwise be the first.
"""

from __future__ import annotations

import importlib.util
import sys

for _name in ("kubernetes", "kubernetes.aio"):
    if _name not in sys.modules and (_spec := importlib.util.find_spec(_name)) is not None:
        sys.modules[_name] = importlib.util.module_from_spec(_spec)

# isort: split
from kubernetes.aio.client.configuration import Configuration  # noqa: E402 the packages around it are set up above
from kubernetes.aio.config import KUBE_CONFIG_DEFAULT_LOCATION, load_incluster_config, load_kube_config  # noqa: E402
from kubernetes.aio.config.config_exception import ConfigException  # noqa: E402

__all__ = [
    "KUBE_CONFIG_DEFAULT_LOCATION",
    "ConfigException",
    "Configuration",
    "load_incluster_config",
    "load_kube_config",
]
