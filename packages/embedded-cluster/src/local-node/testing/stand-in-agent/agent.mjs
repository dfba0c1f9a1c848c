// Stands in for the agent in the tests of the node: serves JSON about itself over HTTP on HOLDFAST_AGENT_HOST:1024.
// POST /eval runs the body as a function body in this process and answers what it returns.
import { execSync } from "node:child_process";
import fs from "node:fs";
import { createServer } from "node:http";

if (process.env.IGNORE_TERM === "1") process.on("SIGTERM", () => console.log("TERM ignored"));
else
  process.on("SIGTERM", () => {
    console.log("TERM received");
    process.exit(0);
  });

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  try {
    const result = await new Function("fs", "sh", `return (async () => { ${body} })()`)(fs, (line) =>
      execSync(line, { encoding: "utf8" }),
    );
    response.end(JSON.stringify(result ?? null));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
});
server.listen(1024, process.env.HOLDFAST_AGENT_HOST, () => {
  fs.writeFileSync(`${process.env.HOME}/listening`, "");
  console.log("listening");
});
