"""Plants."""
