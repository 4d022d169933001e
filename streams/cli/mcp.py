"""`pml mcp`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pml.streams.cli.session import load_settings, run_async


def mcp(
    tools: Annotated[
        Literal["proxy", "pml", "both"] | None,
        typer.Option(
            help="proxy: those of the servers behind PML; pml: PML's own. Default: mcp.tools, both."
        ),
    ] = None,
) -> None:
    """Serve tools to an MCP client over standard input and output, against the stack that runs.

    Exit code 4 where no broker answers. Logs go to standard error.

    Example of a client's configuration: {"mcpServers": {"pml": {"command": "/path/to/.venv/bin/pml", "args":
    ["mcp"], "env": {"PML_CONFIG": "/path/to/project/pml.toml"}}}}
    """
    import signal

    from pml.streams.mcp_server.stdio import serve

    settings = load_settings()
    if tools is not None:
        chosen = settings.mcp.model_copy(update={"tools": tools})
        settings = settings.model_copy(update={"mcp": chosen})
    # A thread waits for the next line, which no exception reaches; nothing has to be put away.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    run_async(serve(settings))
