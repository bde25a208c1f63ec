"""Where pods belong: how many, on which Kubernetes Nodes, under which names, with which claims."""
