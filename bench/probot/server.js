// Probot with an empty handler on a port of the loopback address. PORT, APP_ID, PRIVATE_KEY and WEBHOOK_SECRET say how.
import { createServer } from "node:http";
import { createNodeMiddleware, createProbot } from "probot";

const probot = createProbot({
  overrides: {
    appId: process.env.APP_ID,
    privateKey: process.env.PRIVATE_KEY,
    secret: process.env.WEBHOOK_SECRET,
    logLevel: "fatal",
  },
});
const middleware = await createNodeMiddleware(
  (app) => {
    app.on("issues", async () => {});
  },
  { probot, webhooksPath: "/webhooks/github" },
);
createServer((request, response) => {
  middleware(request, response, () => {
    response.writeHead(404);
    response.end();
  });
}).listen(Number(process.env.PORT), "127.0.0.1");
