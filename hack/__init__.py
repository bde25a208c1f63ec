"""Programs for those who develop the operator: local Kubernetes, images, code generation, the demo.

========================  ===========================================================================
module                    concern
========================  ===========================================================================
`audit`                   known vulnerabilities of packages and of images of a release
`changes`                 a release in CHANGELOG.md of the files in ``changes/``
`check`                   ``make test`` and its parts
`client_package`          blocking calls and reference pages of `slurm_client`
`dashboards`              Grafana's dashboards
`demo`                    ``make demo``
`developing`              the operator on this machine, skaffold's builder, kind
`docs_site`               pages and navigation of the documentation site
`generate_slurm_client`   wire code of `slurm_client` from Slurm's own specifications
`images`                  container images
`localkube`               a real Kubernetes on this machine
`machine`                 Debian packages, Go and downloads
`neutral_start`           what programs and tests do not take over from who starts them
`operator_install`        the operator's image and chart in a local Kubernetes
`packaging`               the kustomize base and the values table, from the charts
`plain`                   Slurm from plain manifests, without the operator
`plugin`                  ``kubectl slurm`` as one file, with a manifest for krew
`ports`                   ports of loopback for servers in tests
`preparing`               builds beside the checks that do not need them yet
`progress`                lines that tell a person what is going on
`release`                 what a release has, in one folder
`tables`                  tables that programs write, into the documentation and into the operator
`testing`                 what runs tests: suites, workers, reports
========================  ===========================================================================
"""
