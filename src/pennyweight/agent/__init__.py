"""Subjects that are commands: agents that work in a folder of their own."""
