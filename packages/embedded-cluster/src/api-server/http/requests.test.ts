import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  claimsPath,
  openTestServer,
  podObject,
  podsPath,
  sandboxesPath,
  sandboxObject,
  secretObject,
  secretsPath,
  type TestServer,
  withDefaultNamespace,
} from "../testing/test-server.ts";

const jsonPatch = { "content-type": "application/json-patch+json" };
const mergePatch = { "content-type": "application/merge-patch+json" };

let test: TestServer;
beforeAll(async () => {
  test = await withDefaultNamespace(await openTestServer());
});
afterAll(() => test.close());

describe("the edge", () => {
  it("refuses a missing and a wrong token with the real Status", async () => {
    const unauthorized = {
      code: 401,
      body: {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: "Unauthorized",
        reason: "Unauthorized",
        code: 401,
      },
    };
    expect(await test.call("GET", podsPath, undefined, { authorization: "" })).toEqual(unauthorized);
    expect(await test.call("GET", podsPath, undefined, { authorization: "Bearer nope" })).toEqual(unauthorized);
  });

  it("keeps its kubeconfig and its credentials to its owner", () => {
    expect(statSync(test.server.kubeconfigPath).mode & 0o777).toBe(0o600);
    expect(statSync(join(test.dataDir, "api-server")).mode & 0o777).toBe(0o700);
    for (const file of ["token", "tls.pem", "objects.sqlite"]) {
      expect(statSync(join(test.dataDir, "api-server", file)).mode & 0o777).toBe(0o600);
    }
  });

  it("says that it is ready, and which version it copies", async () => {
    expect(await test.call("GET", "/readyz")).toEqual({ code: 200, body: "ok" });
    expect((await test.call("GET", "/version")).body).toMatchObject({ major: "1" });
  });

  it.each([
    ["an unknown resource", "GET", "/api/v1/namespaces/default/configmaps"],
    ["an unknown subresource", "GET", `${podsPath}/a/log`],
    ["a status that there is not", "GET", `${secretsPath}/a/status`],
  ])("refuses %s by name", async (_, method, path) => {
    const { code, body } = await test.call(method, path);
    expect(code).toBe(404);
    expect(body).toMatchObject({ kind: "Status", reason: "NotFound" });
    expect(body.message).toContain("is not served by the embedded cluster");
  });

  it.each(["/nothing", "/apis/apps/v1", "/apis/agents.x-k8s.io/v1/sandboxes"])("has a page for %s", async (path) => {
    const { code, body } = await test.call("GET", path);
    expect(code).toBe(404);
    expect(body).toBe(
      `404 page not found: the server could not find the requested resource: ${path} is not served by the embedded cluster\n`,
    );
  });

  it("refuses a method that a resource does not have", async () => {
    expect(await test.call("POST", "/api/v1/pods", podObject("a"))).toMatchObject({
      code: 405,
      body: { reason: "MethodNotAllowed" },
    });
    expect(await test.call("PUT", podsPath, {})).toMatchObject({ code: 405 });
  });

  it.each(["..", "%2e%2e", "%2E.", ".", "%2e", "a%2Fb", "a\\..\\b", "%25"])(
    "takes the name %s for no other object's, as a caller writes it",
    async (name) => {
      await test.call("POST", "/api/v1/namespaces", { metadata: { name: "kept" } });
      const kept = { code: 200, body: { metadata: { name: "kept" }, status: { phase: "Active" } } };
      for (const path of [`/api/v1/namespaces/kept/secrets/${name}`, `/api/v1/namespaces/kept/${name}`]) {
        expect((await test.call("DELETE", path)).code, path).toBeOneOf([400, 404]);
        expect(await test.call("GET", "/api/v1/namespaces/kept")).toMatchObject(kept);
      }
      const listed = await test.call("GET", `/api/v1/namespaces/${name}/secrets`);
      expect(listed.body.items ?? []).toEqual([]);
    },
  );

  it("refuses the names . and .. in the real server's words", async () => {
    expect(await test.call("GET", `${secretsPath}/%2e%2e`)).toMatchObject({
      code: 400,
      body: { reason: "BadRequest", message: `Name parameter invalid: "..": may not be '..'` },
    });
  });

  it("takes 3 MiB of body and no more, and 1.5 MiB of object", async () => {
    const note = (bytes: number) => ({ ...secretObject("large"), data: { x: "a".repeat(bytes) } });
    expect(await test.call("POST", secretsPath, note(3 * 1024 * 1024))).toMatchObject({
      code: 413,
      body: { reason: "RequestEntityTooLarge" },
    });
    const tooMuch = await test.call("POST", secretsPath, note(2_900_000));
    expect(tooMuch).toMatchObject({ code: 500, body: { message: "etcdserver: request is too large" } });
    expect(await test.call("POST", secretsPath, note(1_500_000))).toMatchObject({ code: 201 });
  });

  it("serves nobody who asks to be someone else", async () => {
    const as = { "impersonate-user": "someone" };
    expect(await test.call("GET", secretsPath, undefined, as)).toMatchObject({ code: 403 });
    expect(await test.call("POST", secretsPath, secretObject("a"), as)).toMatchObject({ code: 403 });
    expect(await test.call("GET", `${secretsPath}/a`)).toMatchObject({ code: 404 });
  });

  it("goes on when a caller leaves in the middle of its body", async () => {
    const { hostname, port } = new URL(test.server.url);
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const token = readFileSync(join(test.dataDir, "api-server", "token"), "utf8");
    socket.write(
      `POST ${secretsPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-length: 999\r\n\r\n{"a`,
    );
    socket.destroy();
    await once(socket, "close");
    expect((await test.call("GET", "/readyz")).code).toBe(200);
  });

  it("answers a write that fails unforeseen, on a full disk say, with a 500 that names it, and logs it", async () => {
    let isBroken = false;
    const logged: string[] = [];
    const broken = await openTestServer({
      now: () => {
        if (isBroken) throw new Error("database or disk is full");
        return new Date();
      },
      log: pino({ level: "warn" }, { write: (line) => void logged.push(line) }),
    });
    isBroken = true;
    const answer = await broken.call("POST", "/api/v1/namespaces", { metadata: { name: "a" } });
    expect(answer).toMatchObject({ code: 500, body: { message: expect.stringContaining("disk is full") } });
    expect(logged.join()).toContain("disk is full");
    await broken.close();
  });

  it("answers 400 to a body that is no JSON, no object, or of another kind", async () => {
    expect(await test.call("POST", podsPath, "{")).toMatchObject({ code: 400, body: { reason: "BadRequest" } });
    expect(await test.call("POST", podsPath, [])).toMatchObject({ code: 400 });
    expect(await test.call("POST", podsPath, { kind: "Secret", apiVersion: "v1" })).toMatchObject({ code: 400 });
    expect(await test.call("POST", podsPath, podObject("a", {}, { labels: { a: 1 } }))).toMatchObject({ code: 400 });
  });

  it("survives a body nested deeper than a stack", async () => {
    const deep = `{"metadata":{"name":"deep"},"spec":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    expect(await test.call("POST", sandboxesPath, deep)).toMatchObject({ code: 400 });
    expect((await test.call("GET", "/readyz")).code).toBe(200);
  });
});

describe("discovery", () => {
  it("lists groups, and their resources with status subresources", async () => {
    const { body: groups } = await test.call("GET", "/apis");
    expect(groups.groups.map((group: { name: string }) => group.name)).toEqual([
      "agents.x-k8s.io",
      "extensions.agents.x-k8s.io",
      "networking.k8s.io",
      "authentication.k8s.io",
      "authorization.k8s.io",
    ]);
    const { body: list } = await test.call("GET", "/apis/agents.x-k8s.io/v1beta1");
    expect(list.resources.map((resource: { name: string }) => resource.name)).toEqual([
      "sandboxes",
      "sandboxes/status",
    ]);
    expect((await test.call("GET", "/apis/agents.x-k8s.io")).body).toMatchObject({
      preferredVersion: { version: "v1beta1" },
    });
    expect((await test.call("GET", "/api")).body).toMatchObject({ versions: ["v1"] });
    expect((await test.call("GET", "/api/v1")).body.resources.length).toBeGreaterThan(7);
  });
});

describe("create", () => {
  it("gives uid, creation time, version and generation, and takes none of them from the caller", async () => {
    const stolen = {
      uid: "mine",
      generation: 7,
      creationTimestamp: "2001-01-01T00:00:00Z",
      deletionTimestamp: "2001-01-01T00:00:00Z",
    };
    const { code, body } = await test.call("POST", sandboxesPath, sandboxObject("made", {}, stolen));
    expect(code).toBe(201);
    expect(body.metadata).toEqual({
      name: "made",
      namespace: "default",
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      generation: 1,
      resourceVersion: expect.stringMatching(/^\d+$/),
      creationTimestamp: expect.stringMatching(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    });
    expect(body.metadata.creationTimestamp).not.toBe(stolen.creationTimestamp);
  });

  it("fills in a Sandbox's mode and shutdown policy, and drops a status that was sent", async () => {
    const { body } = await test.call("POST", sandboxesPath, {
      ...sandboxObject("defaulted"),
      status: { service: "x" },
    });
    expect(body.spec).toMatchObject({ operatingMode: "Running", shutdownPolicy: "Retain" });
    expect(body.status).toBeUndefined();
  });

  it("refuses a second object of a name, and a name that is none", async () => {
    await test.call("POST", secretsPath, secretObject("twice"));
    expect(await test.call("POST", secretsPath, secretObject("twice"))).toMatchObject({
      code: 409,
      body: {
        reason: "AlreadyExists",
        message: 'secrets "twice" already exists',
        details: { name: "twice", kind: "secrets" },
      },
    });
    expect(await test.call("POST", secretsPath, secretObject("Not_A_Name"))).toMatchObject({
      code: 422,
      body: { reason: "Invalid" },
    });
    expect(await test.call("POST", secretsPath, secretObject(""))).toMatchObject({
      code: 422,
      body: { message: 'Secret "" is invalid: metadata.name: Required value: name or generateName is required' },
    });
  });

  it("makes a name from generateName", async () => {
    const { body } = await test.call("POST", secretsPath, secretObject("", { generateName: "some-" }));
    expect(body.metadata.name).toMatch(/^some-[a-z0-9]{5}$/);
  });

  it("refuses a namespace that does not exist, or another than the path's", async () => {
    expect(await test.call("POST", "/api/v1/namespaces/none/secrets", secretObject("a"))).toMatchObject({
      code: 404,
      body: { message: 'namespaces "none" not found' },
    });
    expect(await test.call("POST", secretsPath, secretObject("a", { namespace: "other" }))).toMatchObject({
      code: 400,
    });
  });

  it("refuses modes and pods that are none, naming the field", async () => {
    expect(await test.call("POST", sandboxesPath, sandboxObject("bad", { operatingMode: "Asleep" }))).toMatchObject({
      code: 422,
      body: {
        message: expect.stringContaining(
          'Sandbox.agents.x-k8s.io "bad" is invalid: [spec.operatingMode: Unsupported value: "Asleep": supported values: "Running", "Suspended", <nil>:',
        ),
        details: { causes: [{ field: "spec.operatingMode", reason: "FieldValueNotSupported" }, { field: "<nil>" }] },
      },
    });
    expect(await test.call("POST", sandboxesPath, { metadata: { name: "bad" } })).toMatchObject({ code: 422 });
    expect(await test.call("POST", podsPath, { metadata: { name: "bad" }, spec: { containers: [] } })).toMatchObject({
      code: 422,
    });
    expect(await test.call("POST", claimsPath, { metadata: { name: "bad" }, spec: {} })).toMatchObject({ code: 422 });
  });
});

describe("update", () => {
  it("bumps the generation on a change of spec, and only then", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("generation"));
    const at = `${sandboxesPath}/generation`;
    const generationAfter = async (patch: object, sub = "") =>
      (await test.call("PATCH", at + sub, patch, mergePatch)).body.metadata.generation;
    expect(await generationAfter({ metadata: { annotations: { a: "b" } } })).toBe(1);
    expect(await generationAfter({ status: { service: "x" } }, "/status")).toBe(1);
    expect(await generationAfter({ spec: { operatingMode: "Suspended" } })).toBe(2);
    expect(await generationAfter({ spec: { operatingMode: "Suspended" } })).toBe(2);
  });

  it("refuses a stale version with 409 and leaves the object", async () => {
    const { body: first } = await test.call("POST", sandboxesPath, sandboxObject("stale"));
    const at = `${sandboxesPath}/stale`;
    await test.call("PATCH", at, { metadata: { labels: { a: "b" } } }, mergePatch);
    const changed = { ...first, spec: { ...first.spec, operatingMode: "Suspended" } };
    expect(await test.call("PUT", at, changed)).toMatchObject({
      code: 409,
      body: {
        reason: "Conflict",
        message:
          'Operation cannot be fulfilled on sandboxes.agents.x-k8s.io "stale": the object has been modified; please apply your changes to the latest version and try again',
        details: { name: "stale", group: "agents.x-k8s.io", kind: "sandboxes" },
      },
    });
    expect((await test.call("GET", at)).body.spec.operatingMode).toBe("Running");
  });

  it("wants a version for a PUT of a custom resource", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("unconditional"));
    expect(await test.call("PUT", `${sandboxesPath}/unconditional`, sandboxObject("unconditional"))).toMatchObject({
      code: 422,
    });
  });

  it("makes no new version where nothing changes", async () => {
    const { body } = await test.call("POST", sandboxesPath, sandboxObject("same"));
    const again = await test.call("PUT", `${sandboxesPath}/same`, body);
    expect(again.body.metadata.resourceVersion).toBe(body.metadata.resourceVersion);
  });

  it("writes the status on its subresource alone, and nothing else there", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("status"));
    const at = `${sandboxesPath}/status`;
    const both = { metadata: { labels: { a: "b" } }, spec: { operatingMode: "Suspended" }, status: { service: "x" } };
    const viaStatus = (await test.call("PATCH", `${at}/status`, both, mergePatch)).body;
    expect(viaStatus).toMatchObject({ status: { service: "x" }, spec: { operatingMode: "Running" } });
    expect(viaStatus.metadata.labels).toBeUndefined();
    const viaMain = (await test.call("PATCH", at, { ...both, status: { service: "y" } }, mergePatch)).body;
    expect(viaMain).toMatchObject({ status: { service: "x" }, spec: { operatingMode: "Suspended" } });
  });

  it("refuses another uid and another name", async () => {
    await test.call("POST", secretsPath, secretObject("identity"));
    expect(
      await test.call("PATCH", `${secretsPath}/identity`, { metadata: { uid: "other" } }, mergePatch),
    ).toMatchObject({ code: 422 });
    expect(await test.call("PUT", `${secretsPath}/identity`, secretObject("other"))).toMatchObject({ code: 400 });
  });
});

describe("a Sandbox's volumeClaimTemplates", () => {
  const claim = (storage: string) => [
    { metadata: { name: "workspace" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } } },
  ];
  const refused = {
    code: 422,
    body: {
      reason: "Invalid",
      message: expect.stringContaining("is invalid: spec: Invalid value: volumeClaimTemplates is immutable"),
    },
  };

  it("cannot be changed, unset, or set later", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("with-claims", { volumeClaimTemplates: claim("1Gi") }));
    await test.call("POST", sandboxesPath, sandboxObject("without-claims"));
    const patch = (name: string, value: unknown) =>
      test.call("PATCH", `${sandboxesPath}/${name}`, { spec: { volumeClaimTemplates: value } }, mergePatch);
    expect(await patch("with-claims", claim("2Gi"))).toMatchObject(refused);
    expect(await patch("with-claims", null)).toMatchObject(refused);
    expect(await patch("without-claims", claim("1Gi"))).toMatchObject(refused);
    expect(await patch("with-claims", claim("1Gi"))).toMatchObject({ code: 200 });
  });

  it("counts a rewritten quantity as a change, as the real server does", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("rewritten", { volumeClaimTemplates: claim("1024Mi") }));
    const same = { spec: { volumeClaimTemplates: claim("1Gi") } };
    expect(await test.call("PATCH", `${sandboxesPath}/rewritten`, same, mergePatch)).toMatchObject(refused);
  });
});

describe("JSON Patch", () => {
  it("that copies a thing into itself again and again is refused before it fills the memory", async () => {
    await test.call("POST", secretsPath, secretObject("s", { annotations: { a: "x".repeat(1_000) } }));
    const copies = Array.from({ length: 40 }, (_, at) => ({ op: "copy", from: "/metadata", path: `/metadata/c${at}` }));
    expect(await test.call("PATCH", `${secretsPath}/s`, copies, jsonPatch)).toMatchObject({
      code: 413,
      body: { reason: "RequestEntityTooLarge" },
    });
    const one = [{ op: "copy", from: "/metadata/annotations/a", path: "/metadata/annotations/b" }];
    expect((await test.call("PATCH", `${secretsPath}/s`, one, jsonPatch)).body.metadata.annotations.b).toHaveLength(
      1_000,
    );
    const missing = [{ op: "copy", from: "/metadata/labels/none", path: "/metadata/labels/b" }];
    expect(await test.call("PATCH", `${secretsPath}/s`, missing, jsonPatch)).toMatchObject({ code: 422 });
  });

  const unapplied = {
    code: 422,
    body: {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: "the server rejected our request due to an error in our request",
      reason: "Invalid",
      details: {},
      code: 422,
    },
  };

  it.each([
    ["a test that fails", [{ op: "test", path: "/metadata/uid", value: "other" }]],
    ["a test of what is absent", [{ op: "test", path: "/metadata/annotations/x", value: "1" }]],
    ["an add below what is absent", [{ op: "add", path: "/metadata/annotations/x", value: "1" }]],
    ["a replace below what is absent", [{ op: "replace", path: "/spec/nothing/below", value: 1 }]],
    ["a remove of what is absent", [{ op: "remove", path: "/spec/nothing" }]],
    ["an unknown operation", [{ op: "increment", path: "/spec/nothing" }]],
    [
      "a late failing test",
      [
        { op: "add", path: "/spec/operatingMode", value: "Suspended" },
        { op: "test", path: "/kind", value: "Pod" },
      ],
    ],
  ])("with %s answers the real server's 422 and changes nothing", async (what, patch) => {
    const name = what.replaceAll(" ", "-").toLowerCase();
    const { body: before } = await test.call("POST", sandboxesPath, sandboxObject(name));
    expect(await test.call("PATCH", `${sandboxesPath}/${name}`, patch, jsonPatch)).toEqual(unapplied);
    expect((await test.call("GET", `${sandboxesPath}/${name}`)).body).toEqual(before);
  });

  it("applies when its tests hold, whole maps and escaped keys included", async () => {
    const { body } = await test.call("POST", sandboxesPath, sandboxObject("tested"));
    const patch = [
      { op: "test", path: "/metadata/uid", value: body.metadata.uid },
      { op: "test", path: "/metadata/resourceVersion", value: body.metadata.resourceVersion },
      { op: "add", path: "/metadata/annotations", value: { "a.b/c": "1" } },
      { op: "add", path: "/metadata/annotations/d.e~1f", value: "2" },
      { op: "add", path: "/spec/operatingMode", value: "Suspended" },
    ];
    const { code, body: after } = await test.call("PATCH", `${sandboxesPath}/tested`, patch, jsonPatch);
    expect(code).toBe(200);
    expect(after.metadata.annotations).toEqual({ "a.b/c": "1", "d.e/f": "2" });
    expect(after.spec.operatingMode).toBe("Suspended");
    // The very same patch again: the version that it tested is gone.
    expect(await test.call("PATCH", `${sandboxesPath}/tested`, patch, jsonPatch)).toEqual(unapplied);
  });

  it("that cannot be decoded is 400", async () => {
    await test.call("POST", secretsPath, secretObject("undecodable"));
    expect(await test.call("PATCH", `${secretsPath}/undecodable`, {}, jsonPatch)).toMatchObject({
      code: 400,
      body: { reason: "BadRequest" },
    });
    expect(await test.call("PATCH", `${secretsPath}/undecodable`, "[", jsonPatch)).toMatchObject({ code: 400 });
  });
});

describe("patch types", () => {
  it("refuses strategic merge and server-side apply with 415", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("types"));
    for (const type of ["application/strategic-merge-patch+json", "application/apply-patch+yaml"]) {
      expect(await test.call("PATCH", `${sandboxesPath}/types`, {}, { "content-type": type })).toMatchObject({
        code: 415,
        body: { reason: "UnsupportedMediaType" },
      });
    }
  });

  it("merges by RFC 7386: null removes, arrays are replaced", async () => {
    await test.call("POST", secretsPath, secretObject("merged", { labels: { a: "1", b: "2" }, finalizers: ["x/y"] }));
    const patch = { metadata: { labels: { a: null, c: "3" }, finalizers: ["x/z"] } };
    const { body } = await test.call("PATCH", `${secretsPath}/merged`, patch, mergePatch);
    expect(body.metadata.labels).toEqual({ b: "2", c: "3" });
    expect(body.metadata.finalizers).toEqual(["x/z"]);
  });

  it("refuses a merge that the library would leave half done", async () => {
    await test.call("POST", secretsPath, secretObject("half"));
    const patch = '{"metadata":{"labels":{"a":"1","constructor":"2","b":"3"}}}';
    expect(await test.call("PATCH", `${secretsPath}/half`, patch, mergePatch)).toMatchObject({ code: 400 });
    expect((await test.call("GET", `${secretsPath}/half`)).body.metadata.labels).toBeUndefined();
  });
});

describe("many writers of one object", () => {
  it("apply one after another: of those that test one version, one wins", async () => {
    const { body } = await test.call("POST", sandboxesPath, sandboxObject("raced"));
    const patch = (writer: number) => [
      { op: "test", path: "/metadata/resourceVersion", value: body.metadata.resourceVersion },
      { op: "add", path: "/metadata/annotations", value: { writer: String(writer) } },
    ];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, writer) => test.call("PATCH", `${sandboxesPath}/raced`, patch(writer), jsonPatch)),
    );
    expect(answers.filter((answer) => answer.code === 200)).toHaveLength(1);
    expect(answers.filter((answer) => answer.code === 422)).toHaveLength(19);
    const winner = answers.findIndex((answer) => answer.code === 200);
    const { body: after } = await test.call("GET", `${sandboxesPath}/raced`);
    expect(after.metadata.annotations.writer).toBe(String(winner));
  });
});

describe("reviews", () => {
  it("know the one token and its user", async () => {
    const path = "/apis/authentication.k8s.io/v1/tokenreviews";
    expect((await test.call("POST", path, { spec: { token: "no" } })).body.status.authenticated).toBeUndefined();
    const asked = { resourceAttributes: { verb: "get", resource: "pods" } };
    const access = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    expect((await test.call("POST", access, { spec: { ...asked, user: "somebody" } })).body.status).toEqual({
      allowed: false,
    });
    expect(
      (await test.call("POST", access, { spec: { ...asked, user: "holdfast-embedded" } })).body.status.allowed,
    ).toBe(true);
  });
});
