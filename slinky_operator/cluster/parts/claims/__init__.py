"""Claims that StatefulSets have made: which settings of `persistence` can be carried out, and how they grow."""
