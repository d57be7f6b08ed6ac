"""Task files of other programs: their formats, the mirrored directories, and problems reported by a running mirror.

`punchlist_apps.files.mirror` writes the files. Tools use this package for the ids of tasks in files, and to find out
whether a file is corrupt.
"""
