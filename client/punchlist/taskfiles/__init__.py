"""Task files: the forms in which other programs keep lists, where such files are, and what is wrong with them.

`punchlist_apps.files.mirror` keeps the files up; tools ask here what a file calls a task and whether it can be read.
"""
