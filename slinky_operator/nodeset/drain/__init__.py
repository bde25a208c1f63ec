"""Why a node is drained, what is done about it step by step, and what its pod shows of it."""
