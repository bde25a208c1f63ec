"""What a change of the configuration would end: jobs on partitions, nodes, GRES and under parameters."""
