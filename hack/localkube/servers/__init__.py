"""The servers of a cluster: their command lines, configuration files and certificates. It starts none of them."""
