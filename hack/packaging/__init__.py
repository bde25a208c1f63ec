"""What is made from the chart: the kustomize base and the table of values.

The chart is the one source of the operator's manifests. `python -m hack.packaging write` makes the rest, `check` tells
what has drifted.
"""
