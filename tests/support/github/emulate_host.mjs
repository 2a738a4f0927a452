// Holds the stateful GitHubs of one test process: `node emulate_host.mjs API` reads one JSON line for each request,
// {"start": {"port", "seed", "baseUrl"}} or {"stop": port}, and answers each with a line, {} or {"error"}.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { createEmulator } = await import(pathToFileURL(process.argv[2]).href);
const running = new Map();

async function answer({ start, stop }) {
  if (start) {
    running.set(start.port, await createEmulator({ service: "github", ...start }));
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
