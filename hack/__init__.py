"""Programs for those who develop the operator: local Kubernetes, images, code generation, the demo.

============  =======================================================================================
module        concern
============  =======================================================================================
`check`       ``make test`` and its parts
`client`      wire code, blocking calls and reference pages of `slurm_client`
`dashboards`  Grafana's dashboards
`developing`  the operator on this machine, skaffold's builder, kind
`documents`   tables in the documentation and in the operator; the documentation site
`images`      container images
`installing`  the operator, or Slurm without it, in a local Kubernetes; ``make demo``
`localkube`   a real Kubernetes on this machine
`machine`     this machine: Debian packages, Go, downloads, ports, how programs start and tell
`packaging`   the kustomize base and the values table, from the charts
`release`     what a release has, in one folder; the plugin, the changelog, known vulnerabilities
`testing`     what runs tests: suites, builds beside them, reports
============  =======================================================================================
"""
