"""Recordings."""
