"""Excitation."""
