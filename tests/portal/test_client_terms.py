"""`headstart submit` where a challenge has terms: it says what to do, and accepts the version that is named."""

from pathlib import Path

import pytest

from headstart.__main__ import main
from headstart.tests.material.portals import blue
from headstart.tests.material.served_portals import serve_portal
from headstart.tests.portal.conftest import OpenSite


def test_terms_are_accepted_where_their_version_is_named(
    open_site: OpenSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = open_site({"terms": {"version": "2026-01", "text": "Be fair."}})
    monkeypatch.setenv("HEADSTART_TOKEN", site.token)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    document = tmp_path / "entry.json"
    document.write_bytes(blue("owl", "lark"))

    with serve_portal(site.settings) as address:
        command = ["submit", str(document), f"--url={address}", "--wait=false"]

        def refused(*options: str) -> str:
            with pytest.raises(SystemExit, match="1"):
                main([*command, *options])
            out, error = capsys.readouterr()
            assert (out, error.count("\n")) == ("", 1)
            return error.strip()

        told = refused()
        assert told.startswith("error: terms: accept version '2026-01' first, ")
        assert told.endswith(f"; read them at {address}/blue or /red, then pass --terms=VERSION")
        assert refused("--terms=1").endswith("version: '1' is not the version of the terms; their version is '2026-01'")
        assert site.read("/api/submissions") == []
        for options in (["--terms=2026-01"], ["--terms=2026-01"], []):
            main([*command, *options])
    assert len(site.read("/api/submissions")) == 1
