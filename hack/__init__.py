"""Programs for those who develop the operator: local Kubernetes, images, code generation, the demo.

========================  ===========================================================================
module                    concern
========================  ===========================================================================
`check`                   ``make test`` and its parts
`client_package`          blocking calls and reference pages of `slurm_client`
`dashboards`              Grafana's dashboards
`demo`                    ``make demo``
`developing`              the operator on this machine, skaffold's builder, kind
`docs_site`               pages and navigation of the documentation site
`generate_slurm_client`   wire code of `slurm_client` from Slurm's own specifications
`images`                  container images
`localkube`               a real Kubernetes on this machine
`machine`                 this machine: Debian packages, Go, downloads, ports, how programs start and tell
`operator_install`        the operator's image and chart in a local Kubernetes
`packaging`               the kustomize base and the values table, from the charts
`plain`                   Slurm from plain manifests, without the operator
`release`                 what a release has, in one folder; the plugin, the changelog, known vulnerabilities
`tables`                  tables that programs write, into the documentation and into the operator
`testing`                 what runs tests: suites, builds beside them, reports
========================  ===========================================================================
"""
