"""Task lists in other people's files: one module for each form, pure functions between text and tasks.

A reader makes a `Draft` of a document: tasks with the ids that the file gives them, and a count of everything that it
passed over or read in another way. `matching` compares a draft with a list and makes one call of the difference.
"""
