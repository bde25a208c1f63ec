"""The page that Prometheus gets: its text, and the server that hands it out.

`server` writes samples in Prometheus's text format, and answers by HTTP with pages that are ready.
"""
