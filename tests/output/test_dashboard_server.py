"""Whether the dashboard's server can be reached, of servers that answer in any way."""

import pytest

from headstart.output.dashboard import find_problem
from headstart.tests.material.file_servers import serve_files

# How a server fails, and why it counts as one that cannot be reached; below 0, it waits for so many seconds.
ANSWERS: dict[str, tuple[list[int], str]] = {
    "answers": ([], ""),
    "refuses this page": ([404], ""),
    "gateway": ([503], "503"),
    "hangs": ([-1], "timed out"),
}


def test_a_server_is_there_whatever_it_says_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.output.dashboard.TIMEOUT", 0.5)
    monkeypatch.setenv("no_proxy", "*")
    with serve_files() as server:
        server.files["/"] = b"page"
        for name, (failures, problem) in ANSWERS.items():
            server.failures["/"] = failures
            result = find_problem(server.url)
            assert (result is None) is not bool(problem), name
            assert problem in str(result), name
    for url in ("http://127.0.0.1:1", "http://nowhere.invalid", "no address"):
        assert find_problem(url), url
