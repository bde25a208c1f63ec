"""Secrets that users name: what must be in them, and for which servers they are meant. Pure.

===========  ==================================================
module       concern
===========  ==================================================
`checks`     whether a Secret has what it must, and may be used
`allowlist`  whether a Secret may be used for a Slurm elsewhere
===========  ==================================================
"""
