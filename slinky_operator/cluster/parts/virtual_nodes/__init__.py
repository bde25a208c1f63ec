"""What the controller of virtual Nodes has decided."""
