"""A certificate authority for tests, run with openssl."""

import subprocess
from pathlib import Path

from punchlist_testing.optional import needs

needs_openssl = needs("openssl")


class Authority:
    """A certificate authority whose key and certificate are files in `directory`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.certificate = directory / "ca.pem"
        self._key = directory / "ca.key"
        subject = ["-subj", "/CN=an authority of a test", "-addext", "basicConstraints=critical,CA:TRUE"]
        _openssl("req", "-x509", *_NEW, self._key, "-out", self.certificate, "-days", "30", *subject)

    def sign(self, name: str, host: str, *, days: int = 30) -> tuple[Path, Path]:
        """Issue a certificate for a host name or address; return it with its key. Negative `days`: it has expired."""
        key, request, certificate = (self._directory / f"{name}.{end}" for end in ("key", "csr", "pem"))
        kind = "IP" if host.replace(".", "").isdigit() else "DNS"
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={kind}:{host}\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl("req", *_NEW, key, "-out", request, "-subj", f"/CN={name}")
        issuer = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, "-out", certificate, "-days", str(days), *issuer)
        return certificate, key


_NEW = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout")


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
