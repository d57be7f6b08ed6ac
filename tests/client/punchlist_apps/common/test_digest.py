import hashlib

from punchlist_apps.common.digest import sha256


def test_it_is_the_one_that_everybody_has() -> None:
    assert sha256(b"a").hexdigest() == hashlib.sha256(b"a").hexdigest()
