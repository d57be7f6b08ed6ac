"""Models behind one port: `completions` for Chat Completions, and `agents_sdk` for the OpenAI Agents SDK."""
