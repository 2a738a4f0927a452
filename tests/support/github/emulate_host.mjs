// Holds the stateful GitHubs of one test process: `node emulate_host.mjs API` reads one JSON line for each request,
// {"start": {"port", "seed", "baseUrl"}}, {"settle": url} or {"stop": port}, and answers each with a line, {} or
// {"error"}. What it owes to `url`, where its webhooks go, has been sent when it answers "settle".
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { createEmulator } = await import(pathToFileURL(process.argv[2]).href);
const running = new Map();
const sending = new Set();
const send = globalThis.fetch;

// They begin to send each webhook before they answer the request that it tells of.
globalThis.fetch = async (url, options) => {
  const webhook = { url };
  sending.add(webhook);
  try {
    return await send(url, options);
  } finally {
    sending.delete(webhook);
  }
};

async function settle(url) {
  // Twice in a row: one may lead to the next.
  for (let quiet = 0; quiet < 2; ) {
    await new Promise(setImmediate);
    quiet = [...sending].some((webhook) => webhook.url === url) ? 0 : quiet + 1;
    if (!quiet) await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function answer({ start, settle: url, stop }) {
  if (start) {
    running.set(start.port, await createEmulator({ service: "github", ...start }));
  } else if (url) {
    await settle(url);
  } else {
    // Whoever still holds a connection must not be waited for.
    running.get(stop)?.close().catch(() => {});
    running.delete(stop);
  }
  return {};
}

for await (const line of createInterface({ input: process.stdin })) {
  const told = await answer(JSON.parse(line)).catch((error) => ({ error: String(error?.stack ?? error) }));
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
process.exit(0);
