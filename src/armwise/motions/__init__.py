"""Motions."""
