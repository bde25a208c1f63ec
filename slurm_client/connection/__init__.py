"""How a request gets its answer: sent, repeated, limited, and read piece by piece, or one of our errors."""
