"""The portal's rooms: records are below work, work is below web, and commands are above all."""

from headstart.tests.test_rooms import imports

# The layers from the bottom up; a layer imports only from lower layers and itself.
FLOORS = {"settings": 0, "records": 1, "work": 2, "web": 3, "serve": 4, "admin": 4}
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
