"""An organisation's sign-in by OpenID Connect, on this machine."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "portal", "a secret of both"


@dataclass
class IdentityProvider:
    """A provider at which everybody is the same person, and what it does wrong.

    Attributes:
        address: Its address.
        claims: Further claims of its ID tokens, which replace others.
        signer: The key of its signatures; `key` is the one that it publishes.
        broken: Path that is answered by an error of the server.
        asked: Requests for authorization.
    """

    address: str
    claims: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    signer: RSAKey | None = None
    broken: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)

    def authorize(self, query: dict[str, str]) -> str:
        """Return where the browser goes with the code of a person who signs in."""
        self.asked.append(query)
        return f"{query['redirect_uri']}?{urlencode({'code': str(len(self.asked)), 'state': query['state']})}"

    def exchange(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the tokens for a code; None unless the client knows its secret and proves that it asked."""
        asked = self.asked[int(form["code"]) - 1]
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization != f"Basic {basic}" or challenge != asked["code_challenge"]:
            return None
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "sub": "7", "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, {**claims, **self.claims}, self.signer or self.key)
        return {"access_token": "x", "token_type": "Bearer", "id_token": token}


@contextmanager
def serve_provider() -> Iterator[IdentityProvider]:
    """Serve a provider at a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == provider.broken:
                self._answer(500, b"<html>")
            elif parts.path == "/authorize":
                target = provider.authorize({name: values[0] for name, values in parse_qs(parts.query).items()})
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()
            elif parts.path == "/keys":
                self._answer(200, {"keys": [provider.key.as_dict(private=False)]})
            else:
                ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
                urls = {name: f"{provider.address}/{path}" for name, path in ends.items()}
                self._answer(200, {"issuer": provider.address, **urls})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            fields = {name: values[0] for name, values in form.items()}
            tokens = provider.exchange(fields, self.headers.get("Authorization", ""))
            if self.path == provider.broken:
                self._answer(500, b"<html>")
            else:
                self._answer(400 if tokens is None else 200, tokens or {"error": "invalid_grant"})

        def _answer(self, status: int, content: object) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # A name other than the portal's makes it another site for browsers.
    provider = IdentityProvider(f"http://localhost:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
