"""Models behind one port: `completions` speaks Chat Completions by itself, `agents` uses the OpenAI Agents SDK."""
