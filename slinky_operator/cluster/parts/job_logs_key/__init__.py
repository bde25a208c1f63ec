"""The key by which the operator proves itself to job log servers."""
