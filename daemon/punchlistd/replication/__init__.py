"""Lists that several machines share: each daemon keeps a whole replica, and a shared log decides the order of posts.

Nothing here is imported by a daemon that has no space.
"""
