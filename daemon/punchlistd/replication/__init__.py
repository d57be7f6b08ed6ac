"""Lists that several machines share. Each daemon keeps a full replica, and a shared log decides the order of posts.

A daemon without a space imports almost nothing from this package.
"""
