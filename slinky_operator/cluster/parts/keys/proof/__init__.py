"""Which daemons must have a key set, which have proven it, and how each is asked."""
