"""What is made from the charts: the kustomize base, schemas and tables of values, and the table of Slinky's values.

The chart is the one source of the operator's manifests. `python -m hack.packaging write` makes the rest, `check` tells
what has drifted.
"""
