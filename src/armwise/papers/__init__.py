"""Papers."""
