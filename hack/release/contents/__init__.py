"""What a release has.

=============  =========================================================
`wheels`       Python packages
`charts`       charts, as helm packs them and as archives for registries
`artifacthub`  what Artifact Hub shows of a chart
`olm`          a bundle for the Operator Lifecycle Manager
`manifests`    one YAML file for each set of CRDs, and for the operator
`images`       images as OCI archives that say which release they are of
`sboms`        lists of what is in an image
`provenance`   checksums, and a statement of what was made from what
=============  =========================================================
"""
