import { podUidOf } from "@holdfast/contract";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCluster } from "./kube-cluster.ts";
import { clientOf, podJson, soon } from "./testing/fixtures.ts";
import { json, type Script, ScriptedApi, status } from "./testing/scripted-api.ts";

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

async function deletePodAgainst(script: Script) {
  api.script(script);
  using within = soon();
  const wish = { name: "namzu-ws-one", uid: podUidOf("pod-uid-1"), resourceVersion: "50" };
  return await cluster.deletePod(wish, within);
}

describe("L42 the delete of a pod", () => {
  it("is one DELETE under preconditions of uid and resourceVersion", async () => {
    const ending = await deletePodAgainst((_received, reply) => json(reply, 200, podJson()));
    expect(ending).toEqual({ t: "applied", value: undefined });
    expect(api.received).toMatchObject([
      {
        method: "DELETE",
        url: { pathname: "/api/v1/namespaces/team-a/pods/namzu-ws-one" },
        body: {
          kind: "DeleteOptions",
          propagationPolicy: "Background",
          preconditions: { uid: "pod-uid-1", resourceVersion: "50" },
        },
      },
    ]);
  });

  it("is refused as a condition where the pod is another by now, or has changed", async () => {
    expect(await deletePodAgainst((_received, reply) => status(reply, 409, "Conflict"))).toMatchObject({
      t: "refused",
      why: "condition",
    });
  });

  it("is refused as absent where it is gone", async () => {
    const gone: Script = (_received, reply) => status(reply, 404, "NotFound", { details: { name: "namzu-ws-one" } });
    expect(await deletePodAgainst(gone)).toMatchObject({ t: "refused", why: "absent" });
  });

  it("names the verb that the Role lacks", async () => {
    expect(await deletePodAgainst((_received, reply) => status(reply, 403, "Forbidden"))).toMatchObject({
      t: "refused",
      why: "other",
      error: { reason: "CLUSTER_FORBIDDEN", message: expect.stringContaining("delete pods") },
    });
  });

  it("is unknown, and sent once, where no answer came", async () => {
    const ending = await deletePodAgainst((received) => void received.socket.destroy());
    expect(ending).toMatchObject({ t: "unknown" });
    expect(api.received).toHaveLength(1);
  });
});
