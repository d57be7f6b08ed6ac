// The sign-in screen, for browsers without a session.

import { html, useState } from "./vendor.js";
import { Problem, buildLinkCommand, redeem, signedOut } from "./link.js";
import { Command } from "./parts.js";
import { safe } from "./text.js";

export default function Door() {
  return html`<main class="door" id="main">
    <img src="/icon.svg" alt="" width="56" height="56" />
    <h1>punchlist</h1>
    ${signedOut.value && html`<p class="bad" role="alert">${safe(signedOut.value)}</p>`}
    <p>This page shows your task lists to you alone. To sign this browser in, run</p>
    <${Command} of=${buildLinkCommand()} />
    <p>and open the link it prints. A link works once, within a minute; then this browser stays signed in.</p>
    <p class="waiting" role="status"><i aria-hidden="true"></i>Waiting…</p>
    <${CodeForm} />
  </main>`;
}

/** The field for the six digits of `punch web --code`, for devices on which no link can be opened. */
function CodeForm() {
  const [problem, setProblem] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const field = event.currentTarget.elements.code;
    setProblem("");
    try {
      await redeem({ code: field.value.replace(/\D/g, "") });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error.message);
      field.select();
    }
  };
  return html`<form class="code-form" onSubmit=${submit}>
    <label for="code">Or enter the six digits that <code>punch web --code</code> prints</label>
    <span class="pair"><input id="code" name="code" required inputmode="numeric" autocomplete="one-time-code"
      maxlength="11" pattern="\\D*(\\d\\D*){6}" title="six digits" />
      <button>Sign in</button></span>
    ${problem && html`<p class="bad" role="alert">${safe(problem)}</p>`}
  </form>`;
}
