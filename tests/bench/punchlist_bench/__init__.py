"""The benchmark: each figure and its anchor are measured in turn in the same run."""
