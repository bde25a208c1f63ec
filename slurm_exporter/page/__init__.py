"""The page that Prometheus gets: its text, and the server that hands it out.

=================  ==================================================================
module             concern
=================  ==================================================================
`text`             samples as Prometheus's text format
`server`           HTTP: pages that are ready, liveness and readiness
=================  ==================================================================
"""
