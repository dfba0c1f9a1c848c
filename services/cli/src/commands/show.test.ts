import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { WorkspaceSchema, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { expect, it } from "vitest";
import { workspaceTable } from "./show.ts";

const told = (workspace: MessageInitShape<typeof WorkspaceSchema>) =>
  workspaceTable(create(WorkspaceSchema, { workspaceId: "box", ...workspace })).split("\n");
const GiB = 1024n ** 3n;
const MiB = 1024n ** 2n;

it("a workspace is told whole", () => {
  const pod = {
    name: "p",
    node: "n",
    image: "agent:1",
    restartCount: 2,
    termination: { reason: "OOMKilled", exitCode: 137, finishedAt: { seconds: 1_767_225_600n } },
    disk: { totalBytes: 10n * GiB, usedBytes: 4n * GiB, availableBytes: 5n * GiB, totalInodes: 99n, usedInodes: 7n },
    memory: { usedBytes: 300n * MiB, workingSetBytes: 100n * MiB, limitBytes: 512n * MiB },
  };
  const live = { liveExecutions: 1, liveSessions: 2, livePorts: 0 };
  const stands = { state: WorkspaceState.RUNNING, template: "small", root: "/workspace", holderEpoch: 0n };
  expect(told({ ...stands, pod, ...live })).toEqual([
    "WORKSPACE       box",
    "state           running",
    "template        small",
    "root            /workspace",
    "holder epoch    0",
    "pod             p on n",
    "image           agent:1",
    "restarts        2",
    "last ended      OOMKilled, exit code 137, 2026-01-01 00:00:00",
    "disk            4.0 GiB of 10.0 GiB used, 5.0 GiB free; 7 of 99 inodes",
    "memory          300.0 MiB of 512.0 MiB used, 100.0 MiB of it in work",
    "held open here  1 execution, 2 sessions, 0 ports",
    "",
  ]);
});

it("what is not known is said to be so, and no number stands for it", () => {
  const lines = told({ pod: { name: "p", restartCount: 1, termination: {} } });
  expect(lines).toContain("state           not known");
  expect(lines).toContain("holder epoch    not known");
  expect(lines).toContain("last ended      for a reason that is not known");
  expect(lines).toContain("disk            not known");
  expect(lines).toContain("memory          not known");
  const bare = told({ pod: { name: "p", disk: { totalBytes: 1n }, memory: { usedBytes: 1n } } });
  expect(bare).toContain("disk            0 B of 1 B used, 0 B free");
  expect(bare).toContain("memory          1 B used");
});

it("a suspended one has no pod, and nothing of the cluster's reaches the terminal raw", () => {
  const waiting = { transition: { waitingFor: "a pod\u001b[2J" } };
  const lines = told({ state: WorkspaceState.SUSPENDED, ...waiting });
  expect(lines).toContain("pod             none");
  expect(lines).toContain("state           suspended, waiting for a pod\\x1b[2J");
});
