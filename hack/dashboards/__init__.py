"""Dashboards for Grafana, written from what they show; the chart brings them as ConfigMaps."""
