"""Opening, verification and repair of logs, backups and restores."""
