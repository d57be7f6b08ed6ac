"""Models behind one port: `completions` for Chat Completions, `agents_sdk` for the OpenAI Agents SDK."""
