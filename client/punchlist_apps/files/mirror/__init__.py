"""Mirror files: a conversation's list as JSON files, for programs that know nothing else.

The files are copies and never the truth. What others write into them is a proposal: it is compared with the version
that the file says it came from, and becomes ordinary calls, or a conflict that is reported and loses nothing.
"""
