"""What a release has, in one folder: ``make release``.

============  ===============================================================================
`version`     the one version of the project, and the places that repeat it
`parameters`  what a release is made with: version, registry, commit, time
`contents`    what a release has: wheels, charts, manifests, images, and what is said of them
`assets`      files as they are attached to a published release
`publish`     images pushed as they were checked, one name for both architectures
`support`     the table of Kubernetes and Slurm versions
`changes`     a release in CHANGELOG.md of the files in ``changes/``
`plugin`      ``kubectl slurm`` as one file, with a manifest for krew
`audit`       known vulnerabilities of packages and of images of a release
============  ===============================================================================

Tests of a folder are in ``tests/release``: ``make release-check`` installs each thing that is in it. Signing is left to
``.github/workflows/release.yaml``.
"""
