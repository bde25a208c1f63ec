"""The API types of group ``slinky.slurm.net``, and nothing that acts on them.

A controller reads objects through ``slinky_api.v1alpha1``, names labels, annotations and finalizers through
``slinky_api.labels`` and conditions through ``slinky_api.conditions``. The CRDs are generated from the same
models by ``slinky_api.crd``. Talking to a cluster is left to the operator: it imports no other package.
"""
