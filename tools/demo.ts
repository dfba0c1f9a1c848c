// The tour: a workspace opens, streams a command's output, sleeps, wakes with its disk, and is destroyed. Exit code 0 only if all held.
//   npm run demo                          on an embedded cluster of its own, in a folder that is removed afterwards
//   npm run demo -- --separate            the same, with cluster and service in processes of their own
//   npm run demo -- --target HOST:PORT    on a service that runs already
import { randomUUID } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { startServers } from "./demo-servers.ts";
import { readFlags, refuseFlags } from "./read-flags.ts";

const flags = readFlags("demo", { separate: { type: "boolean" }, target: { type: "string" } });
if (flags.separate === true && flags.target !== undefined)
  refuseFlags("demo", "--separate would do nothing beside --target, which is a service that runs already");
if (flags.target !== undefined && !/^(?:\[[\da-f:.]+\]|[^\s:/[\]]+):\d{1,5}$/iu.test(flags.target))
  refuseFlags("demo", `--target must be host:port, as 127.0.0.1:50051; it is ${JSON.stringify(flags.target)}`);
const workspaceId = `demo-${randomUUID().slice(0, 8)}`;
const text = new TextDecoder();

await using servers = await startServers(flags);
const transport = createGrpcTransport({ baseUrl: `http://${servers.target}` });
const workspaces = createClient(WorkspaceService, transport);
const executions = createClient(ExecutionService, transport);
const inventory = createClient(InventoryService, transport);

let failed = false;
try {
  await tour();
} catch (error) {
  failed = true;
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : error}`);
}
process.exitCode = failed ? 1 : 0;

async function tour(): Promise<void> {
  const first = await step("open", async () => {
    const { workspace } = await workspaces.openWorkspace({ workspaceId });
    must(workspace?.state === WorkspaceState.RUNNING, "the workspace runs");
    return [workspace, `pod ${workspace.identity?.podUid}, disk at ${workspace.root}`];
  });

  await step("stream a command", async () => {
    const lines: string[] = [];
    let nextOffset = 0n;
    for await (const { event } of executions.execute({
      workspaceId,
      command: "sh",
      args: ["-c", "for i in 1 2 3; do echo line $i; done; exit 7"],
    })) {
      if (event.case === "output") {
        must(event.value.offset === nextOffset, "each chunk begins where the last ended");
        nextOffset += BigInt(event.value.data.length);
        lines.push(text.decode(event.value.data));
      }
      if (event.case === "exited")
        must(event.value.status.case === "exitCode" && event.value.status.value === 7, "the exit code is 7");
    }
    must(lines.join("") === "line 1\nline 2\nline 3\n", "all three lines arrived");
    return [undefined, "3 lines, exit code 7"];
  });

  const written = await step("write a file", async () => {
    const digest = await hashOf(`head -c 8388608 /dev/urandom > ${first.root}/data && sync`);
    return [digest, `8 MiB, sha256 ${digest.slice(0, 16)}…`];
  });

  await step("suspend", async () => {
    const { workspace } = await workspaces.suspendWorkspace({ workspaceId });
    must(workspace?.state === WorkspaceState.SUSPENDED, "the workspace is suspended");
    must(workspace.pod === undefined, "the pod is gone");
    const refused = await executions.runCommand({ workspaceId, command: "true" }).then(
      () => "",
      (error: unknown) => String(error),
    );
    must(refused !== "", "a command is refused meanwhile");
    return [undefined, "the pod is gone, the disk stays"];
  });

  await step("resume", async () => {
    const { workspace } = await workspaces.resumeWorkspace({ workspaceId });
    must(workspace?.state === WorkspaceState.RUNNING, "the workspace runs again");
    must(workspace.identity?.podUid !== first.identity?.podUid, "in a new pod");
    must(workspace.identity?.sandboxUid === first.identity?.sandboxUid, "of the same workspace");
    return [undefined, `pod ${workspace.identity?.podUid}`];
  });

  await step("find the file", async () => {
    const digest = await hashOf("true");
    must(digest === written, `the file is what was written (${digest})`);
    return [undefined, `sha256 ${digest.slice(0, 16)}…, the same`];
  });

  await step("destroy with its disk", async () => {
    await workspaces.destroyWorkspace({ workspaceId, deleteDisk: true });
    const left = await inventory.listWorkspaces({ workspaceIdPrefix: workspaceId });
    must(left.workspaces.length === 0, "nothing is listed any more");
    return [undefined, "object, pod and disk are gone"];
  });

  /** Runs `prepare` in the workspace, then hashes the demo's file. */
  async function hashOf(prepare: string): Promise<string> {
    const done = await executions.runCommand({
      workspaceId,
      command: "sh",
      args: ["-c", `${prepare} && sha256sum ${first.root}/data`],
    });
    must(
      done.exited?.status.case === "exitCode" && done.exited.status.value === 0,
      `exit code 0 (${text.decode(done.stderr)})`,
    );
    return text.decode(done.stdout).split(" ")[0] ?? "";
  }
}

async function step<T>(name: string, run: () => Promise<[T, string]>): Promise<T> {
  const startedAt = performance.now();
  const [value, found] = await run();
  console.log(`${name.padEnd(24)}${`${Math.round(performance.now() - startedAt)} ms`.padStart(9)}   ${found}`);
  return value;
}

function must(holds: boolean, promise: string): asserts holds {
  if (!holds) throw new Error(`it does not hold that ${promise}`);
}
