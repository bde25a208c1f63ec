"""Writes of objects of a Cluster: which are due, and how the API server takes them.

===================  =========================================================================
module               concern
===================  =========================================================================
`due`                which objects are written: those that differ
`kubernetes_writes`  how objects are written and deleted, and pods of trials are created
===================  =========================================================================
"""
