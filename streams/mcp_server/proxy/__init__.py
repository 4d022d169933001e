"""The proxy: tools of other MCP servers, offered and called as their own server would (DESIGN §4, §5)."""
