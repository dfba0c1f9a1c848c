import { clientsOf } from "./harness.ts";

/**
 * A client that holds one of each, to be killed: node holding-client.ts TARGET WORKSPACE PORT. Says "holding" once an execution, a terminal
 * and a connection to a port stand.
 */
const [target = "", workspaceId = "", port = ""] = process.argv.slice(2);
const { executions, sessions, ports } = clientsOf(target);

/** Resolves with the stream's first word; the rest is not read. */
async function begun(stream: AsyncIterable<unknown>): Promise<void> {
  if ((await stream[Symbol.asyncIterator]().next()).done) throw new Error("a stream ended before it began");
}

const size = { columns: 80, rows: 24 };
const program = { command: "/bin/sh", args: ["-c", "read -r x"], size };
const { session } = await sessions.openTerminal({ workspaceId, program });
await Promise.all([
  begun(executions.execute({ workspaceId, command: "sleep", args: ["600"] })),
  begun(sessions.attachTerminal({ workspaceId, sessionId: session?.sessionId ?? "" })),
  begun(
    ports.connect(
      (async function* () {
        yield { request: { case: "start" as const, value: { workspaceId, port: Number(port) } } };
        await new Promise(() => undefined);
      })(),
    ),
  ),
]);
process.stdout.write("holding\n");
