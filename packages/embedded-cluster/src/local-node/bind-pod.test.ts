import { describe, expect, it } from "vitest";
import { ApiStatusError } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { bindPod } from "./bind-pod.ts";
import { quiet } from "./testing/cluster.ts";

const pod: KubeObject = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "default", uid: "u" } };
const on = (nodeName: string, uid = "u"): KubeObject => ({ ...pod, metadata: { name: "a", uid }, spec: { nodeName } });
const status = (code: number) =>
  new ApiStatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code });
const lost = new Error("socket hang up");

/** Binds against a server that answers each bind and each read as scripted: what is thrown, or what is there. */
async function bindAgainst(
  script: { binds: (Error | undefined)[]; reads?: (Error | KubeObject)[] },
  signal?: AbortSignal,
) {
  const { binds, reads = [] } = script;
  let calls = 0;
  const api = {
    bind: async () => {
      calls++;
      const refused = binds.shift();
      if (refused !== undefined) throw refused;
    },
    get: async () => {
      const found = reads.shift();
      if (found === undefined || found instanceof Error) throw found ?? status(404);
      return found;
    },
  } as Pick<ResourceApi, "bind" | "get"> as ResourceApi;
  const bound = await bindPod({ api, nodeName: "n", log: quiet }, pod, signal ?? new AbortController().signal);
  return { bound, calls };
}

describe("a pod is bound", () => {
  it("at once where the server takes it", async () => {
    expect(await bindAgainst({ binds: [undefined] })).toEqual({ bound: true, calls: 1 });
  });

  it("by asking again after no answer, and by looking where the lost one had done it", async () => {
    expect(await bindAgainst({ binds: [lost, status(500), status(429), undefined] })).toEqual({
      bound: true,
      calls: 4,
    });
    expect(await bindAgainst({ binds: [lost, status(409)], reads: [on("n")] })).toEqual({ bound: true, calls: 2 });
    const again = { binds: [status(409), status(409)], reads: [lost, on("n")] };
    expect(await bindAgainst(again)).toEqual({ bound: true, calls: 2 });
  });

  it.each([
    ["is gone", { binds: [status(404)] }],
    ["went meanwhile", { binds: [status(409)], reads: [status(404)] }],
    ["is being deleted", { binds: [status(409)], reads: [pod] }],
    ["is on another node", { binds: [status(409)], reads: [on("other")] }],
    ["is another of the name", { binds: [status(409)], reads: [on("n", "other")] }],
  ])("not where it %s", async (_, script) => {
    expect((await bindAgainst(script)).bound).toBe(false);
  });

  it("not where the server forbids it, and says so", async () => {
    await expect(bindAgainst({ binds: [status(403)] })).rejects.toMatchObject({ code: 403 });
  });

  it("not once the pod is to stop", async () => {
    expect(await bindAgainst({ binds: [] }, AbortSignal.abort())).toEqual({ bound: false, calls: 0 });
  });
});
