import { clientsOf, http1ClientsOf } from "./harness.ts";

/**
 * A client in the middle of everything, to be killed: node busy-client.ts GRPC-TARGET WEB-TARGET WORKSPACE. Says "busy" once each of its
 * streams has begun.
 */
const [target = "", web = "", workspaceId = ""] = process.argv.slice(2);
const clients = clientsOf(target);
const browser = http1ClientsOf(web);

/** Resolves when the stream has said its first word; it is read on, or not. */
async function begun(stream: AsyncIterable<unknown>, isRead: boolean): Promise<void> {
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  const readOn = async (): Promise<void> => {
    while (!(await events.next()).done);
  };
  if (isRead) readOn().catch(() => undefined); // It is cut with this process.
}

const program = { command: "/bin/sh", args: ["-c", "yes"], size: { columns: 80, rows: 24 } };
const terminals = ["t1", "t2"].map((name) => `${name}-${process.pid}`);
const [first = "", second = ""] = terminals;
for (const sessionId of terminals) await clients.sessions.openTerminal({ workspaceId, sessionId, program });
await Promise.all([
  begun(clients.executions.execute({ workspaceId, command: "yes" }), true),
  begun(clients.executions.execute({ workspaceId, command: "yes" }), false),
  begun(browser.executions.execute({ workspaceId, command: "yes" }), true),
  begun(clients.sessions.attachTerminal({ workspaceId, sessionId: first }), true),
  begun(browser.sessions.attachTerminal({ workspaceId, sessionId: second }), false),
  begun(clients.workspaces.watchWorkspace({ workspaceId }), true),
  begun(browser.workspaces.watchWorkspace({ workspaceId: "nobody" }), true),
  begun(clients.inventory.watchWorkspaces({}), true),
]);
const waiting = clients.executions.runCommand({ workspaceId, command: "sleep", args: ["60"] });
waiting.catch(() => undefined); // It is cut with this process.
const upload = clients.files.writeFile(
  (async function* () {
    yield { part: { case: "start" as const, value: { workspaceId, path: "half" } } };
    yield { part: { case: "data" as const, value: new Uint8Array(64 * 1024) } };
    process.stdout.write("busy\n");
    await new Promise(() => undefined);
  })(),
);
await upload;
