"""The door for agents: PML's own tools over MCP (CONTRACT.md, MCP tools)."""
