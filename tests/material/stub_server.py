"""The portal without its worker: `python -m headstart.tests.material.stub_server OPTIONS`."""

from threading import Event

from headstart.portal import serve

if __name__ == "__main__":
    vars(serve)["keep_working"] = lambda args, stopping: Event.wait(stopping)
    serve.main()
