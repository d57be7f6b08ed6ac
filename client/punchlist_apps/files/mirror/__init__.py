"""Mirror files: a list as JSON or Markdown files, for programs that can only edit files.

The files are copies; the list is authoritative. Changes to a file are proposals: they are compared with the version
that the file came from, and become ordinary calls or reported conflicts. Nothing is lost.
"""
