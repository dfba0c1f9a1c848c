import { join } from "node:path";
import { QuiesceOutcome, QuiesceScope } from "@holdfast/api/holdfast/v1/common_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { isSessionId, podUidOf } from "@holdfast/contract";
import { guestDialler } from "@holdfast/guest-client";
import type { Guest, OpenSessionWish, SessionEvent } from "@holdfast/workspace";
import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { dataFolder, startService } from "./harness.ts";

const soon = (): Deadline => new Deadline(systemClock, 20_000);

/** The guest in a workspace's pod, reached beside the service. */
async function guestOf(dataDir: string, workspaceId: string): Promise<Guest> {
  const config = new KubeConfig();
  config.loadFromFile(join(dataDir, "kubeconfig"));
  const pod = await config
    .makeApiClient(CoreV1Api)
    .readNamespacedPod({ namespace: "default", name: `namzu-ws-${workspaceId}` });
  const host = pod.status?.podIP ?? "";
  const guest = guestDialler(systemClock).guest({ host, port: 1024, podUid: podUidOf(pod.metadata?.uid ?? "") });
  onTestFinished(() => guest.close());
  return guest;
}

function shellOf(id: string): OpenSessionWish {
  if (!isSessionId(id)) throw new Error(id);
  return {
    sessionId: id,
    kind: "terminal",
    command: "/bin/sh",
    args: ["-i"],
    cwd: undefined,
    env: { PS1: "$ " },
    size: { columns: 120, rows: 40 },
    login: false,
    clientBound: false,
    expectedBootId: undefined,
  };
}

describe("a terminal in a real pod of the embedded cluster", () => {
  it("G15 G20 is the pod's own, without privileges, with job control; and a suspend with quiesce ends it", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await service.workspaces.openWorkspace({ workspaceId: "term" });
    const guest = await guestOf(folder.path, "term");
    const opened = await guest.sessions.open(shellOf("shell"), soon());
    const { sessionId } = opened;
    let text = "";
    const waiting = new Set<() => void>();
    const until = async (what: RegExp): Promise<void> => {
      while (!what.test(text)) await new Promise<void>((resolve) => waiting.add(resolve));
    };
    let first: ((event: SessionEvent) => void) | undefined;
    const attached = new Promise<SessionEvent>((resolve) => {
      first = resolve;
    });
    const wish = {
      sessionId,
      fromOffset: 0,
      mode: "exclusive",
      size: undefined,
      attachmentId: undefined,
      expectedBootId: undefined,
    } as const;
    const reading = (async () => {
      for await (const event of guest.sessions.attach(wish, new AbortController().signal)) {
        first?.(event);
        if (event.t === "output") text += Buffer.from(event.data).toString("latin1");
        for (const wake of waiting) wake();
        waiting.clear();
      }
    })();
    const ended = reading.catch((error) => error);
    const event = await attached;
    if (event.t !== "attached") throw new Error("not attached");
    let sequence = event.nextInputSequence;
    const type = (line: string): Promise<unknown> =>
      guest.sessions.write(
        { sessionId, attachmentId: event.attachmentId, sequence: sequence++, data: Buffer.from(line) },
        soon(),
      );
    await type("tty; stty size; grep -E '^(NoNewPrivs|CapEff)' /proc/self/status; pwd; touch here\n");
    await until(/\/dev\/pts\/\d+\r\n40 120\r\n/);
    await until(/CapEff:\t0000000000000000\r\nNoNewPrivs:\t1\r\n/);
    await type("sleep 1000; echo in''terrupted\n");
    await until(/sleep 1000; echo in''terrupted\r\n/);
    await type("\x03");
    await type("echo ba''ck\n");
    await until(/back\r\n/);
    expect(text).not.toContain("interrupted");
    expect(text).not.toMatch(/job control|can't access tty/);
    await type("sleep 1001 &\n");
    const { quiesce } = await service.workspaces.suspendWorkspace({
      workspaceId: "term",
      quiesce: { grace: { seconds: 0n, nanos: 300_000_000 } },
    });
    expect(quiesce).toMatchObject({ outcome: QuiesceOutcome.QUIESCED, scope: QuiesceScope.PID_NAMESPACE });
    expect(quiesce?.stopped.map(({ name }) => name)).toEqual(expect.arrayContaining(["sh", "sleep"]));
    await ended;
  });
});
