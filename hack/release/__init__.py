"""What a release has, in one folder: ``make release``.

==============  ====================================================================================
room            concern
==============  ====================================================================================
`version`       the one version of the project, and the places that repeat it
`parameters`    what a release is made with: version, registry, commit, time
`wheels`        Python packages
`charts`        charts, as helm packs them and as archives for registries
`artifacthub`   what Artifact Hub shows of a chart
`olm`           a bundle for the Operator Lifecycle Manager
`manifests`     one YAML file for each set of CRDs, and for the operator
`images`        images as OCI archives that say which release they are of
`sboms`         lists of what is in an image
`provenance`    checksums, and a statement of what was made from what
`assets`        files as they are attached to a published release
`support`       the table of Kubernetes and Slurm versions
==============  ====================================================================================

Tests of a folder are in ``tests/release``: ``make release-check`` installs each thing that is in it. Signing and
publishing are left to ``.github/workflows/release.yaml``.
"""
