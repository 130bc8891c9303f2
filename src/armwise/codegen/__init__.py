"""Codegen."""
