"""Requests to the API server: where it is, how one is sent and repeated, reads and writes."""
