"""The server of `punch agent mcp`: tools in all dialects, and lists as resources, over the Model Context Protocol.

Needs the extra `mcp`. The server doesn't offer the extension `io.modelcontextprotocol/tasks`: an MCP task is a handle
on one deferred request, while tasks of this project are items of a list.
"""
