"""What the controller of the bridge's nodes has decided."""
