"""SHA-256 for hooks and shell prompts: the interpreter's own, since `hashlib` first loads OpenSSL."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # from Python 3.12 on
    except ImportError:
        from _sha256 import sha256

__all__ = ["sha256"]
