"""Builds the project's container images on a machine without Docker, and keeps them in a cache.

`hack.images.build.ensure` gives image archives, `hack.images.rootfs.ensure` gives a directory tree with all Slurm
daemons of one version. What the images contain is said by the Dockerfiles under `containers/`, which also build with
plain Docker; this package supplies the base image they start from (Debian, by debootstrap), runs buildah, and packs the
result. Loading archives into a container runtime is left to the callers.
"""
