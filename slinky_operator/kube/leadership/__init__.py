"""One writer at a time: the Lease, the fence before every write, and other operators for the same kinds."""
