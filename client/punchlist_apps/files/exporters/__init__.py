"""Exporters: lists as files that the importers read back. They load no importer, so that `punch export` starts fast."""
