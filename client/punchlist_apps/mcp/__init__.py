"""The server behind `punch agent mcp`: tools in all dialects, and lists as resources, over the Model Context Protocol.

Requires the extra `mcp`. The server doesn't offer the extension `io.modelcontextprotocol/tasks`: an MCP task is a
handle for one deferred request, whereas tasks in this project are items of a list.
"""
