"""MCP servers that exist to be measured with."""
