"""How Prometheus finds metrics: a Service and a ServiceMonitor for slurmctld and the exporter."""
