import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { expect, it } from "vitest";
import { clusterReady, startServiceProcess } from "../../tools/service-process.ts";
import { dataFolder, startServiceOn } from "./harness.ts";

const run = promisify(execFile);
const tool = join(dirname(dirname(import.meta.dirname)), "tools/cluster-faults.ts");

// What docs/operations.md shows under "Try failures", as `npm run cluster -- faults` runs it.
it("L1 a suspend whose reply is lost by a fault of the command line is found out by proof", async () => {
  await using folder = await dataFolder();
  await using cluster = await startServiceProcess(
    ["cluster", "--data-dir", folder.path, "--allow-faults"],
    clusterReady,
  );
  expect(cluster.lines.join("\n")).toContain("faults");
  await using service = await startServiceOn((cluster.announced[1] ?? "").trim().split(/\s+/));
  const faults = async (...words: string[]): Promise<string> =>
    (await run(process.execPath, [tool, "--data-dir", folder.path, ...words])).stdout;

  await service.workspaces.openWorkspace({ workspaceId: "first" });
  expect(await faults("list")).toBe("no rules\n");
  const match = { by: "client", verb: "patch", resource: "sandboxes" };
  const rule = JSON.stringify({ match, action: { t: "applyThenDrop" }, count: 1 });
  expect(await faults("add", rule)).toBe('{"id":"f1"}\n');
  const { workspace } = await service.workspaces.suspendWorkspace({ workspaceId: "first" });
  expect(workspace?.state).toBe(WorkspaceState.SUSPENDED);
  expect(await faults("list")).toMatch(/^f1 {2}met 1 {2}\{/u);
  expect(await faults("clear")).toBe('{"removed":1}\n');
  await expect(faults("add", "{}")).rejects.toThrow("Nothing was changed.");
  await expect(faults("explode")).rejects.toThrow("faults clear [ID]");
});
