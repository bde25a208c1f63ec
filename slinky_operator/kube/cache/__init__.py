"""What the operator sees of Kubernetes without asking: stores, what fills them, and what is read from them once."""
