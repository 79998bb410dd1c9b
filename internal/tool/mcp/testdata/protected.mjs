// An MCP server made with the official SDK for Node that only accepts tokens of an
// authorization server, and that server: oidc-provider. Its argument is {"modules":
// node_modules of the SDK, "provider": node_modules of oidc-provider}. It prints the ports of both.
import http from "node:http";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const config = JSON.parse(process.argv[2]);
const require = createRequire(path.join(config.modules, "package.json"));
const file = (name) => pathToFileURL(createRequire(path.join(config.provider, "package.json")).resolve(name));
const { Provider, errors } = await import(file("oidc-provider"));
const { createLocalJWKSet, jwtVerify } = await import(file("jose"));
const express = require("express");
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { requireBearerAuth } = require("@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js");
const { InvalidTokenError } = require("@modelcontextprotocol/sdk/server/auth/errors.js");
const { z } = require("zod");

const listen = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
const authorization = http.createServer(), resource = http.createServer();
const issuer = `http://127.0.0.1:${await listen(authorization)}`;
const origin = `http://127.0.0.1:${await listen(resource)}`;
const url = origin + "/mcp", metadata = origin + "/.well-known/oauth-protected-resource/mcp";

const provider = new Provider(issuer, {
  clients: [{ client_id: "robot", client_secret: "secret-of-robot", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] }],
  scopes: ["books", "openid", "offline_access"],
  pkce: { required: () => true },
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, wanted) => {
        if (wanted !== url) throw new errors.InvalidTarget();
        return { scope: "books", audience: wanted, accessTokenFormat: "jwt", accessTokenTTL: 600, jwt: { sign: { alg: "RS256" } } };
      },
    },
  },
});
authorization.on("request", provider.callback());

const rejected = new Set();
let newest = "";
async function verifyAccessToken(token) {
  newest = token;
  try {
    if (rejected.has(token)) throw new Error("rejected");
    const keys = createLocalJWKSet(await (await fetch(issuer + "/jwks")).json());
    const { payload } = await jwtVerify(token, keys, { issuer, audience: url });
    return { token, clientId: payload.client_id, scopes: (payload.scope ?? "").split(" "), expiresAt: payload.exp, extra: { sub: payload.sub } };
  } catch (err) {
    throw new InvalidTokenError(err.message);
  }
}

function make() {
  const s = new McpServer({ name: "library", version: "1" });
  const text = (t) => ({ content: [{ type: "text", text: t }] });
  s.registerTool("who", { description: "Returns whose token was sent, and for which scopes" }, ({ authInfo }) => text(`${authInfo.extra.sub} ${authInfo.scopes}`));
  s.registerTool("echo", { description: "Returns the token" }, ({ authInfo }) => text("token " + authInfo.token));
  return s;
}

const app = express();
app.get(new URL(metadata).pathname, (_req, res) => res.json({ resource: url, authorization_servers: [issuer], scopes_supported: ["books"] }));
app.get("/reject", (_req, res) => { // the newest token, as if it had been revoked
  rejected.add(newest);
  res.end("ok");
});
app.all("/mcp", requireBearerAuth({ verifier: { verifyAccessToken }, requiredScopes: ["books"], resourceMetadataUrl: metadata }), express.json(), async (req, res) => {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await make().connect(transport);
  await transport.handleRequest(req, res, req.body);
});
resource.on("request", app);
console.log(`listening ${new URL(origin).port} ${new URL(issuer).port}`);
