"""The portal's rooms: each layer imports from lower ones alone."""

from headstart.tests.test_rooms import imports

# The layers from the bottom up; a layer imports only from lower layers and itself.
FLOORS = {
    "settings": 0,
    "records": 1,
    "phases": 2,
    "work": 3,
    "commands": 4,
    "web": 5,
    "serve": 6,
    "admin": 6,
}
PREFIX = "headstart.portal."


def room(module: str) -> str:
    return module.removeprefix(PREFIX).partition(".")[0]


def test_imports_run_downwards() -> None:
    arrows = {
        (room(name), room(other))
        for name, others in imports().items()
        for other in others
        if name.startswith(PREFIX) and other.startswith(PREFIX) and room(name) != room(other)
    }
    assert ("web", "records") in arrows
    assert [(upper, lower) for upper, lower in sorted(arrows) if FLOORS[upper] <= FLOORS[lower]] == []
