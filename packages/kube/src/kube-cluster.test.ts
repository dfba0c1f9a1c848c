import { holderEpochFrom, type WorkspaceId } from "@holdfast/contract";
import { hasReason } from "@holdfast/errors";
import type { SandboxReading } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { podTemplateHash } from "./compose/canonical-json.ts";
import type { KubeCluster } from "./kube-cluster.ts";
import { readSandboxObject } from "./objects/sandbox.ts";
import { clientOf, LogRecord, podJson, sandboxJson, soon, templateJson, uid } from "./testing/fixtures.ts";
import { json, ScriptedApi, status } from "./testing/scripted-api.ts";

const id = "one" as WorkspaceId;
const sandboxPath = "/apis/agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxes";

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

const readTemplate = async () => {
  api.script((_received, reply) => json(reply, 200, templateJson()));
  using within = soon();
  const template = await cluster.readTemplate("standard", within);
  api.received.length = 0;
  return template;
};

const reading = (changes: Parameters<typeof sandboxJson>[0] = {}): SandboxReading =>
  readSandboxObject(sandboxJson(changes), "block");

describe("connecting", () => {
  it.each(["", "..", "a/b", "Team", "n".repeat(254)])("is refused for what is no namespace: %j", async (namespace) => {
    await expect(clientOf(api, { namespace })).rejects.toThrow(/not a namespace/);
  });

  it("sends nothing and asks for no token", () => {
    expect(api.received).toEqual([]);
  });

  it("takes the namespace of the context", () => {
    expect(cluster.namespace).toBe("team-a");
  });

  it("presents the kubeconfig's token and asks for JSON", async () => {
    using within = soon();
    await cluster.readSandbox("namzu-ws-one", within).catch(() => undefined);
    expect(api.received[0]?.headers).toMatchObject({
      authorization: "Bearer scripted-token",
      accept: "application/json",
    });
  });
});

describe("create", () => {
  it("POSTs annotations, mode, service, the overlaid pod template and the claims as they are, and nothing that ends the object", async () => {
    const template = await readTemplate();
    api.script((received, reply) => json(reply, 201, { ...sandboxJson(), ...withServerFields(received.body) }));
    using within = soon();
    const marks = { createdBy: "call-c", writtenBy: "call-w", epoch: holderEpochFrom(7) };
    const ending = await cluster.createSandbox({ id, template, ...marks }, within);

    const podTemplate = {
      metadata: {
        labels: { team: "blue", "sandbox.namzu.ai/template": "standard" },
        annotations: { note: "kept" },
      },
      spec: { ...templateJson().spec.podTemplate.spec, automountServiceAccountToken: false },
    };
    expect(api.received).toHaveLength(1);
    expect(api.received[0]).toMatchObject({ method: "POST", url: { pathname: sandboxPath } });
    expect(api.received[0]?.headers["content-type"]).toBe("application/json");
    expect(api.received[0]?.body).toStrictEqual({
      apiVersion: "agents.x-k8s.io/v1beta1",
      kind: "Sandbox",
      metadata: {
        name: "namzu-ws-one",
        namespace: "team-a",
        annotations: {
          "sandbox.namzu.ai/pod-template-hash": podTemplateHash(podTemplate),
          "holdfast.dev/created-by": "call-c",
          "holdfast.dev/written-by": "call-w",
          "sandbox.namzu.ai/holder-epoch": "7",
        },
      },
      spec: {
        podTemplate,
        volumeClaimTemplates: templateJson().spec.volumeClaimTemplates,
        operatingMode: "Running",
        service: true,
      },
    });
    expect(ending.t).toBe("applied");
  });

  it("writes the configured RuntimeClass over the template's and hashes what it wrote", async () => {
    await cluster.close();
    cluster = await clientOf(api, { runtimeClassName: "kata" });
    const template = await readTemplate();
    api.script((_received, reply) => status(reply, 409, "AlreadyExists"));
    using within = soon();
    await cluster.createSandbox({ id, template, createdBy: "c", writtenBy: "w" }, within);
    const body = api.received[0]?.body as {
      metadata: { annotations: object };
      spec: { podTemplate: { spec: object } };
    };
    expect(body.spec.podTemplate.spec).toMatchObject({ runtimeClassName: "kata" });
    expect(body.metadata.annotations).toMatchObject({
      "sandbox.namzu.ai/pod-template-hash": podTemplateHash(body.spec.podTemplate),
    });
  });

  it("says that something of that name stands, and nothing more", async () => {
    const template = await readTemplate();
    api.script((_received, reply) => status(reply, 409, "AlreadyExists"));
    using within = soon();
    expect(await cluster.createSandbox({ id, template, createdBy: "c", writtenBy: "w" }, within)).toEqual({
      t: "exists",
    });
  });

  it("L24 is refused for good by a 422 that names no field: a creation has no condition that could have failed", async () => {
    const template = await readTemplate();
    api.script((_received, reply) => status(reply, 422, "Invalid"));
    using within = soon();
    const ending = await cluster.createSandbox({ id, template, createdBy: "c", writtenBy: "w" }, within);
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_WRITE_REFUSED" } });
  });

  it("does not call a conflict over something else existing", async () => {
    const template = await readTemplate();
    api.script((_received, reply) => status(reply, 409, "Conflict", { message: "quota is being changed" }));
    using within = soon();
    const ending = await cluster.createSandbox({ id, template, createdBy: "c", writtenBy: "w" }, within);
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_UNAVAILABLE" } });
  });

  it.each([
    [
      "another call's mark",
      { annotations: { "holdfast.dev/written-by": "other", "sandbox.namzu.ai/holder-epoch": "7" } },
    ],
    ["another epoch", { annotations: { "holdfast.dev/written-by": "mine", "sandbox.namzu.ai/holder-epoch": "6" } }],
    ["no epoch", { annotations: { "holdfast.dev/written-by": "mine" } }],
    [
      "another name",
      {
        name: "namzu-ws-two",
        annotations: { "holdfast.dev/written-by": "mine", "sandbox.namzu.ai/holder-epoch": "7" },
      },
    ],
  ])("L1 is unknown when what came back has %s", async (_what, metadata) => {
    const template = await readTemplate();
    api.script((_received, reply) => json(reply, 201, sandboxJson({ metadata })));
    using within = soon();
    const marks = { createdBy: "c", writtenBy: "mine", epoch: holderEpochFrom(7) };
    expect((await cluster.createSandbox({ id, template, ...marks }, within)).t).toBe("unknown");
  });

  it("refuses a template's name that cannot be a label, before any request", async () => {
    using within = soon();
    for (const name of ["", "..", "a/b", "Upper", "x".repeat(64)]) {
      await expect(cluster.readTemplate(name, within)).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    }
    expect(api.received).toEqual([]);
  });

  it("takes a template's name of 63 characters, as long as a label may be", async () => {
    const name = "x".repeat(63);
    api.script((_received, reply) => json(reply, 200, { ...templateJson(), metadata: { name } }));
    using within = soon();
    expect(await cluster.readTemplate(name, within)).toMatchObject({ name });
  });

  it("says which template does not exist", async () => {
    api.script((_received, reply) => status(reply, 404, "NotFound", { details: { name: "standard" } }));
    using within = soon();
    await expect(cluster.readTemplate("standard", within)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_FOUND",
      metadata: { template: "standard", namespace: "team-a" },
    });
  });
});

describe("setMode", () => {
  const suspend = (from = reading()) => ({
    reading: from,
    mode: "Suspended" as const,
    writtenBy: "call-2",
    epoch: holderEpochFrom(4),
    volumeClaimUids: { "disk-namzu-ws-one": "claim-uid" },
    now: Date.parse("2026-01-03T00:00:00.000Z"),
  });

  const stored = { "sandbox.namzu.ai/holder-epoch": "4" };

  it("sends one JSON Patch and returns the object as it then stands", async () => {
    api.script((_received, reply) => {
      const annotations = { "holdfast.dev/written-by": "call-2", "sandbox.namzu.ai/holder-epoch": "4" };
      json(
        reply,
        200,
        sandboxJson({ metadata: { annotations, resourceVersion: "42" }, spec: { operatingMode: "Suspended" } }),
      );
    });
    using within = soon();
    const ending = await cluster.setMode(suspend(), within);
    expect(api.received).toHaveLength(1);
    expect(api.received[0]).toMatchObject({ method: "PATCH", url: { pathname: `${sandboxPath}/namzu-ws-one` } });
    expect(api.received[0]?.headers["content-type"]).toBe("application/json-patch+json");
    expect(api.received[0]?.body).toStrictEqual([
      { op: "test", path: "/metadata/uid", value: uid },
      { op: "test", path: "/metadata/annotations/holdfast.dev~1written-by", value: "call-1" },
      {
        op: "test",
        path: "/metadata/annotations/sandbox.namzu.ai~1operating-mode-changed-at",
        value: "2026-01-02T03:04:05.678Z",
      },
      { op: "test", path: "/metadata/annotations/sandbox.namzu.ai~1holder-epoch", value: "3" },
      { op: "add", path: "/metadata/annotations/holdfast.dev~1written-by", value: "call-2" },
      { op: "add", path: "/metadata/annotations/sandbox.namzu.ai~1holder-epoch", value: "4" },
      {
        op: "add",
        path: "/metadata/annotations/sandbox.namzu.ai~1operating-mode-changed-at",
        value: "2026-01-03T00:00:00.000Z",
      },
      {
        op: "add",
        path: "/metadata/annotations/holdfast.dev~1volume-claim-uids",
        value: "disk-namzu-ws-one=claim-uid",
      },
      { op: "add", path: "/spec/operatingMode", value: "Suspended" },
    ]);
    expect(ending).toMatchObject({ t: "applied", value: { mode: "Suspended", resourceVersion: "42" } });
  });

  /** The object as the patch leaves it, but for this. */
  const written = (changes: { readonly metadata?: object; readonly spec?: object }) => ({
    metadata: { annotations: { "holdfast.dev/written-by": "call-2", ...stored }, ...changes.metadata },
    spec: { operatingMode: "Suspended", ...changes.spec },
  });

  it.each([
    ["another object", written({ metadata: { uid: "other" } })],
    ["another call's mark", written({ metadata: { annotations: { "holdfast.dev/written-by": "call-9", ...stored } } })],
    ["the old mode", written({ spec: { operatingMode: "Running" } })],
    [
      "another epoch than was to be stored",
      written({ metadata: { annotations: { "holdfast.dev/written-by": "call-2" } } }),
    ],
  ])("L1 is unknown when the server answers with %s", async (_what, changes) => {
    api.script((_received, reply) => json(reply, 200, sandboxJson(changes)));
    using within = soon();
    expect((await cluster.setMode(suspend(), within)).t).toBe("unknown");
  });
});

describe("delete", () => {
  it("L33 is foreground, under preconditions of uid and resourceVersion", async () => {
    api.script((_received, reply) => json(reply, 200, sandboxJson()));
    using within = soon();
    const ending = await cluster.deleteSandbox(
      { name: "namzu-ws-one", uid: reading().uid, resourceVersion: "41" },
      within,
    );
    expect(api.received).toHaveLength(1);
    expect(api.received[0]).toMatchObject({
      method: "DELETE",
      url: { pathname: `${sandboxPath}/namzu-ws-one` },
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: "Foreground",
        preconditions: { uid, resourceVersion: "41" },
      },
    });
    expect(ending).toEqual({ t: "applied", value: undefined });
  });

  it("tells what is left by owner uid: a namesake's pod and claim are not its", async () => {
    api.script((received, reply) => {
      const other = [{ kind: "Sandbox", apiVersion: "agents.x-k8s.io/v1beta1", name: "namzu-ws-one", uid: "next" }];
      if (received.url.pathname.endsWith("/pods")) {
        json(reply, 200, {
          items: [podJson({ metadata: { ownerReferences: other } }), podJson({ metadata: { name: "last" } })],
        });
      } else if (received.url.pathname.endsWith("/disk-namzu-ws-one")) {
        json(reply, 200, { metadata: { name: "disk-namzu-ws-one", uid: "c", ownerReferences: other } });
      } else if (received.url.pathname.endsWith("/cache-namzu-ws-one")) {
        json(reply, 200, { metadata: { name: "cache-namzu-ws-one", uid: "d", ownerReferences: [{ uid }] } });
      } else json(reply, 200, sandboxJson({ metadata: { uid: "next" } }));
    });
    using within = soon();
    const gone = { name: "namzu-ws-one", uid: reading().uid, resourceVersion: "41", entries: ["disk", "cache"] };
    expect(await cluster.readRemains(gone, within)).toEqual({
      sandbox: false,
      pods: ["last"],
      claims: ["cache-namzu-ws-one"],
    });
  });

  it("does not call a claim gone that it may not read", async () => {
    api.script((received, reply) => {
      if (received.url.pathname.endsWith("/pods")) json(reply, 200, { items: [] });
      else if (received.url.pathname.includes("persistentvolumeclaims")) status(reply, 403, "Forbidden");
      else status(reply, 404, "NotFound", { details: { name: "namzu-ws-one" } });
    });
    using within = soon();
    const gone = { name: "namzu-ws-one", uid: reading().uid, resourceVersion: "41", entries: ["disk"] };
    await expect(cluster.readRemains(gone, within)).rejects.toMatchObject({ reason: "CLUSTER_FORBIDDEN" });
  });
});

describe("pods", () => {
  it("are found by the hash of the Sandbox's name and kept by owner uid, over all pages", async () => {
    api.script((received, reply) => {
      const isSecond = received.url.searchParams.get("continue") === "more";
      const stranger = podJson({ metadata: { name: "stranger", ownerReferences: [{ uid: "x" }] } });
      json(
        reply,
        200,
        isSecond ? { metadata: {}, items: [podJson()] } : { metadata: { continue: "more" }, items: [stranger] },
      );
    });
    using within = soon();
    const pods = await cluster.readPods(reading(), within);
    expect(pods.map(({ uid: podUid }) => podUid)).toEqual(["pod-uid-1"]);
    expect(api.received.map(({ url }) => url.searchParams.get("labelSelector"))).toEqual([
      "agents.x-k8s.io/sandbox-name-hash=022ace72",
      "agents.x-k8s.io/sandbox-name-hash=022ace72",
    ]);
  });

  it("L25 a pod whose label was taken off is not a pod that is gone", async () => {
    api.script((received, reply) =>
      json(reply, 200, received.url.pathname.endsWith("/pods") ? { items: [] } : podJson()),
    );
    using within = soon();
    expect(await cluster.readPods(reading(), within)).toHaveLength(1);
  });
});

describe("pods of other names", () => {
  it("L25 do not stand for the one that has the Sandbox's name: it is looked for by its name all the same", async () => {
    const other = podJson({ metadata: { name: "another-of-its-own", uid: "pod-uid-2" } });
    api.script((received, reply) =>
      json(reply, 200, received.url.pathname.endsWith("/pods") ? { items: [other] } : podJson()),
    );
    using within = soon();
    const pods = await cluster.readPods(reading(), within);
    expect(pods.map(({ uid: podUid }) => podUid)).toEqual(["pod-uid-2", "pod-uid-1"]);
  });

  it("L25 are not its own because they have its name: one of another owner, without its disk, is nobody's", async () => {
    const stranger = podJson({ metadata: { ownerReferences: [{ uid: "someone-else" }] } });
    api.script((received, reply) =>
      json(reply, 200, received.url.pathname.endsWith("/pods") ? { items: [] } : stranger),
    );
    using within = soon();
    expect(await cluster.readPods(reading(), within)).toEqual([]);
  });
});

describe("a stray", () => {
  const volumes = [{ name: "disk", persistentVolumeClaim: { claimName: "disk-namzu-ws-one" } }];
  const stripped = podJson({ metadata: { ownerReferences: undefined }, spec: { volumes } });

  it.each([
    ["by its label", true],
    ["by its name, where the label was taken off too", false],
  ])("L25 is a pod that uses the Sandbox's claims and is not owned by it: it is found %s", async (_how, labelled) => {
    api.script((received, reply) => {
      const isList = received.url.pathname.endsWith("/pods");
      json(reply, 200, isList ? { items: labelled ? [stripped] : [] } : stripped);
    });
    using within = soon();
    expect(await cluster.readPods(reading(), within)).toMatchObject([{ uid: "pod-uid-1", isStray: true }]);
  });

  it("is not a pod of another name's disk, and no remains of what was deleted", async () => {
    const other = ["disk-namzu-ws-two", "disknamzu-ws-one"].map((claimName) => ({
      name: claimName,
      persistentVolumeClaim: { claimName },
    }));
    const elsewhere = podJson({ metadata: { uid: "elsewhere", ownerReferences: undefined }, spec: { volumes: other } });
    api.script((received, reply) => {
      if (received.url.pathname.endsWith("/pods")) json(reply, 200, { items: [elsewhere] });
      else if (received.url.pathname.includes("/pods/")) json(reply, 200, stripped);
      else status(reply, 404, "NotFound");
    });
    using within = soon();
    expect(await cluster.readPods(reading(), within)).toMatchObject([{ uid: "pod-uid-1", isStray: true }]);
    api.script((received, reply) => {
      if (received.url.pathname.endsWith("/pods")) json(reply, 200, { items: [stripped] });
      else status(reply, 404, "NotFound", { details: { name: received.url.pathname.split("/").at(-1) } });
    });
    const gone = { name: "namzu-ws-one", uid: reading().uid, resourceVersion: "41", entries: ["disk"] };
    expect(await cluster.readRemains(gone, within)).toEqual({ sandbox: false, pods: [], claims: [] });
  });
});

describe("claims", () => {
  const withClaims = (answer: (name: string) => [number, unknown]) => {
    api.script((received, reply) => {
      const [code, body] = answer(received.url.pathname.split("/").at(-1) ?? "");
      json(reply, code, body);
    });
  };

  it("are read by name, once, and never listed", async () => {
    withClaims((name) => [200, { metadata: { name, uid: "claim-1", ownerReferences: [{ uid }] } }]);
    using within = soon();
    expect(await cluster.readClaims(reading(), within)).toEqual({ uids: { "disk-namzu-ws-one": "claim-1" }, lost: [] });
    expect(api.received.map(({ url }) => url.pathname)).toEqual([
      "/api/v1/namespaces/team-a/persistentvolumeclaims/disk-namzu-ws-one",
    ]);
  });

  it("L16 one that may not be read is left out, and that is said once", async () => {
    const log = new LogRecord();
    await cluster.close();
    cluster = await clientOf(api, { log });
    withClaims(() => [403, { kind: "Status", reason: "Forbidden", message: "no" }]);
    using within = soon();
    expect(await cluster.readClaims(reading(), within)).toEqual({ uids: {}, lost: [] });
    expect(await cluster.readClaims(reading(), within)).toEqual({ uids: {}, lost: [] });
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toContain("may not get persistentvolumeclaims");
  });

  it("L16 one that cannot be asked for is no lost disk: the reading fails", async () => {
    withClaims(() => [404, { kind: "Status", reason: "NotFound", message: "no such kind" }]);
    using within = soon();
    await expect(cluster.readClaims(reading(), within)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
  });

  it("L16 one that is absent, of another owner, or on its way out is a lost disk", async () => {
    using within = soon();
    withClaims((name) => [200, { metadata: { name, uid: "claim-1", ownerReferences: [{ uid: "someone" }] } }]);
    expect(await cluster.readClaims(reading(), within)).toEqual({ uids: {}, lost: ["disk-namzu-ws-one"] });
    withClaims(() => [404, { kind: "Status", reason: "NotFound", details: { name: "disk-namzu-ws-one" } }]);
    expect(await cluster.readClaims(reading(), within)).toEqual({ uids: {}, lost: ["disk-namzu-ws-one"] });
    const going = { uid: "claim-1", ownerReferences: [{ uid }], deletionTimestamp: "2026-01-01T00:00:00Z" };
    withClaims((name) => [200, { metadata: { name, ...going } }]);
    expect(await cluster.readClaims(reading(), within)).toEqual({
      uids: { "disk-namzu-ws-one": "claim-1" },
      lost: ["disk-namzu-ws-one"],
    });
  });
});

describe("list", () => {
  it("is one GET, and shows only what has our name and the template label", async () => {
    const noLabel = sandboxJson({
      metadata: { name: "namzu-ws-two" },
      spec: { podTemplate: { spec: { containers: [] } } },
    });
    const items = [sandboxJson(), noLabel, sandboxJson({ metadata: { name: "someone-elses" } })];
    api.script((_received, reply) =>
      json(reply, 200, { metadata: { continue: "next", resourceVersion: "99" }, items }),
    );
    using within = soon();
    const page = await cluster.listSandboxes({ limit: 3, continueToken: undefined }, within);
    expect(page.version).toBe("99"); // From which a watch goes on.
    expect(page.sandboxes.map(({ name }) => name)).toEqual(["namzu-ws-one"]);
    expect(page.continueToken).toBe("next");
    expect(api.received.map(({ url }) => url.search)).toEqual(["?limit=3"]);
  });

  it("leaves out one that cannot be read, and says so", async () => {
    const log = new LogRecord();
    await cluster.close();
    cluster = await clientOf(api, { log });
    const odd = sandboxJson({ metadata: { name: "namzu-ws-odd" }, spec: { operatingMode: "Asleep" } });
    api.script((_received, reply) => json(reply, 200, { metadata: {}, items: [odd, null, 7, sandboxJson()] }));
    using within = soon();
    const page = await cluster.listSandboxes({ limit: 10, continueToken: undefined }, within);
    expect(page.sandboxes.map(({ name }) => name)).toEqual(["namzu-ws-one"]);
    expect(log.lines.join()).toContain("namzu-ws-odd");
  });

  it.each([
    [410, "Expired"],
    [400, "BadRequest"],
  ])("a page token that the cluster answers with %i is PAGE_TOKEN_EXPIRED", async (code, reason) => {
    api.script((_received, reply) => status(reply, code, reason));
    using within = soon();
    const error = await cluster.listSandboxes({ limit: 3, continueToken: "old" }, within).catch((e: unknown) => e);
    expect(hasReason(error, "PAGE_TOKEN_EXPIRED")).toBe(true);
    expect(api.received[0]?.url.search).toBe("?limit=3&continue=old");
    // Without a token it cannot be the token's fault.
    const first = cluster.listSandboxes({ limit: 3, continueToken: undefined }, within);
    await expect(first).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
  });
});

/** What a server adds to the object that it was sent. */
function withServerFields(body: unknown): object {
  const sent = body as { metadata: object; spec: object };
  const metadata = {
    ...sent.metadata,
    uid,
    resourceVersion: "1",
    generation: 1,
    creationTimestamp: "2026-01-01T00:00:00Z",
  };
  return { metadata, spec: sent.spec };
}
