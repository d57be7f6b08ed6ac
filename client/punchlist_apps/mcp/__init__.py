"""The server of `punch agent mcp`: the tool dialects, the lists as resources, over the Model Context Protocol.

Needs the extra `mcp`. Our tasks are not MCP's: an MCP task is a handle on one deferred request, ours are items on a
list that no request owns. The extension `io.modelcontextprotocol/tasks` is never claimed.
"""
