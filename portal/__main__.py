"""Serve a portal: `python -m portal --port 8000`."""

from __future__ import annotations

from output.errors import UserError
from output.parser import one_line_errors

if __name__ == "__main__":
    with one_line_errors():
        try:
            from portal.serve import main
        except ModuleNotFoundError as error:
            raise UserError(f"portal cannot be served ({error}); pip install 'headstart[portal]'") from error
        main()
