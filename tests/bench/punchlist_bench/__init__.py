"""The benchmark: every figure beside its anchor, measured in turn in the same run."""
