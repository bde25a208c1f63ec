"""From caches to a snapshot: NodeSets parsed once, pods that have lost their labels, indexes of the caches."""
