"""Revisions of a NodeSet: the hash of what its pods are created from (`revision`), and its records in Kubernetes.

The records, ControllerRevisions, are those of `revision_records`. When pods are replaced is decided elsewhere.
"""
