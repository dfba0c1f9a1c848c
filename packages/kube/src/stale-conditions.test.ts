import { systemClock } from "@holdfast/async";
import type { WorkspaceId } from "@holdfast/contract";
import { readThrough } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCluster } from "./kube-cluster.ts";
import { clientOf, podJson, sandboxJson } from "./testing/fixtures.ts";
import { json, ScriptedApi, status } from "./testing/scripted-api.ts";

const id = "one" as WorkspaceId;
const never = new AbortController().signal;

let api: ScriptedApi;
let cluster: KubeCluster;

beforeEach(async () => {
  api = await ScriptedApi.start();
  cluster = await clientOf(api);
});

afterEach(async () => {
  await cluster.close();
  await api[Symbol.asyncDispose]();
});

/** What the object says beside its mode: `observed` is the generation that the controller has seen; the object's own is 3. */
interface Said {
  readonly mode: "Running" | "Suspended";
  readonly ready: "True" | "False";
  readonly suspended: readonly ["True" | "False" | "Unknown", string];
  readonly observed?: number;
}

/** How a workspace stands that nobody has open, by what an API server says of it. */
async function stateOf({ mode, ready, suspended, observed = 3 }: Said, pod?: object): Promise<string> {
  const [value, reason] = suspended;
  const conditions = [
    { type: "Ready", status: ready, reason: "DependenciesReady", observedGeneration: observed },
    { type: "Suspended", status: value, reason, observedGeneration: observed },
  ];
  const sandbox = sandboxJson({ spec: { operatingMode: mode }, status: { conditions } });
  api.script(({ url }, reply) => {
    const [kind, name] = url.pathname.split("/").slice(-2);
    if (kind === "sandboxes") return json(reply, 200, sandbox);
    if (name === "pods")
      return json(reply, 200, { kind: "PodList", apiVersion: "v1", metadata: {}, items: pod ? [pod] : [] });
    if (kind === "pods" && pod) return json(reply, 200, pod);
    const details = { name, kind };
    return status(reply, 404, "NotFound", { details });
  });
  const view = await readThrough({ clock: systemClock, cluster }, id, never);
  return view.state;
}

describe("B74 how a workspace stands", () => {
  it("is RUNNING by its mode and its pod, though Suspended=True has stood since before the resume", async () => {
    expect(await stateOf({ mode: "Running", ready: "True", suspended: ["True", "PodTerminated"] }, podJson())).toBe(
      "running",
    );
    expect(await stateOf({ mode: "Running", ready: "True", suspended: ["True", "PodTerminated"] })).toBe("starting");
  });

  it.each(["PodNotTerminated", "PodTerminating", "AReasonOfANewerRelease", ""])(
    "is SUSPENDING while its pod lives, whatever the condition's reason: %j",
    async (reason) => {
      for (const value of ["False", "Unknown", "True"] as const) {
        const said: Said = { mode: "Suspended", ready: "False", suspended: [value, reason] };
        expect(await stateOf(said, podJson())).toBe("suspending");
        expect(await stateOf(said, podJson({ metadata: { deletionTimestamp: "2026-01-02T03:05:00Z" } }))).toBe(
          "suspending",
        );
      }
    },
  );

  it("is SUSPENDED with its pod gone by any reason, and not before the controller has seen this generation", async () => {
    const gone: Said = { mode: "Suspended", ready: "False", suspended: ["True", "PodTerminated"] };
    expect(await stateOf(gone)).toBe("suspended");
    expect(await stateOf({ ...gone, suspended: ["True", "AReasonOfANewerRelease"] })).toBe("suspended");
    expect(await stateOf({ ...gone, observed: 2 })).toBe("suspending");
  });

  it("is never SUSPENDED while somebody else's pod has its disk: PodNotOwned", async () => {
    const volumes = [{ name: "disk", persistentVolumeClaim: { claimName: "disk-namzu-ws-one" } }];
    const stray = podJson({ metadata: { ownerReferences: [] }, spec: { volumes } });
    expect(await stateOf({ mode: "Suspended", ready: "False", suspended: ["False", "PodNotOwned"] }, stray)).toBe(
      "suspending",
    );
  });
});
