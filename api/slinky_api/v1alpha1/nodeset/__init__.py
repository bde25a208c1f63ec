"""Kind NodeSet: its spec, its status, and the kind itself."""
