// Runs AG-UI with its own HttpAgent: node ag_ui.mjs FOLDER URL TOKEN THREAD STEPS; prints the result of each step on a line.

import { createRequire } from "node:module";

const [folder, url, token, threadId, steps] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${folder}/`)("@ag-ui/client");
const agent = new HttpAgent({ url, threadId, headers: { Authorization: `Bearer ${token}` } });

for (const step of JSON.parse(steps)) {
  const types = [];
  let outcome = null;
  if (step.say) agent.addMessage({ id: step.id ?? crypto.randomUUID(), role: "user", content: step.say });
  if (step.forget) agent.setMessages([]);
  const resume = step.agree === undefined ? undefined : [{ interruptId: agent.asked, status: "resolved", payload: step.agree }];
  await agent.runAgent(
    { resume },
    {
      onEvent: ({ event }) => void types.push(event.type),
      onRunFinishedEvent: ({ event }) => void ((outcome = event.outcome ?? null), (agent.asked = event.outcome?.interrupts?.[0]?.id)),
      onRunErrorEvent: ({ event }) => void types.push(event.message),
    },
  );
  const messages = agent.messages.map(({ id, role, content, toolCalls }) => ({ id, role, content, tools: toolCalls?.map((call) => call.function.name) }));
  console.log(JSON.stringify({ types, outcome, messages }));
}
