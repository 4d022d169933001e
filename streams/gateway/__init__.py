"""The doors for programs and agents: HTTP, live events, MCP."""
