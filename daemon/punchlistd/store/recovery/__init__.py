"""Opening, verification, repair, backup and restore of logs."""
