"""Importers of task files: one module for each format, made of pure functions between text and tasks.

A reader turns documents into a `Draft`, which holds the tasks with their ids in the file, and counts of everything that
was skipped or converted. `matching` compares a draft with a list and builds one call from the differences.
"""
