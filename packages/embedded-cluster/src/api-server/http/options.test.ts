import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
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

const merge = { "content-type": "application/merge-patch+json" };
const jsonPatch = { "content-type": "application/json-patch+json" };
const dry = "dryRun=All";

let test: TestServer;
beforeAll(async () => {
  test = await withDefaultNamespace(await openTestServer());
});
afterAll(() => test.close());

const revision = async (): Promise<string> => (await test.call("GET", secretsPath)).body.metadata.resourceVersion;

describe("a dry run", () => {
  it("of a create validates and defaults, gives no version, and stores nothing", async () => {
    const before = await revision();
    const tried = await test.call("POST", `${sandboxesPath}?${dry}`, sandboxObject("dry"));
    expect(tried).toMatchObject({ code: 201, body: { spec: { operatingMode: "Running" }, metadata: { name: "dry" } } });
    expect(tried.body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/u);
    expect(tried.body.metadata).not.toHaveProperty("resourceVersion");
    const wrong = sandboxObject("dry", { operatingMode: "Sideways" });
    expect((await test.call("POST", `${sandboxesPath}?${dry}`, wrong)).code).toBe(422);
    await test.call("POST", secretsPath, secretObject("there"));
    expect((await test.call("POST", `${secretsPath}?${dry}`, secretObject("there"))).code).toBe(409);
    expect((await test.call("GET", `${sandboxesPath}/dry`)).code).toBe(404);
    expect(Number(await revision())).toBe(Number(before) + 1);
  });

  it("of an update and a patch answers what would be, at the version that is", async () => {
    const { body } = await test.call("POST", sandboxesPath, sandboxObject("kept"));
    const before = await revision();
    const suspended = { ...body, spec: { ...body.spec, operatingMode: "Suspended" } };
    const put = await test.call("PUT", `${sandboxesPath}/kept?${dry}`, suspended);
    const { resourceVersion } = body.metadata;
    const expected = { spec: { operatingMode: "Suspended" }, metadata: { resourceVersion, generation: 2 } };
    expect(put).toMatchObject({ code: 200, body: expected });
    const patch = { spec: { operatingMode: "Suspended" } };
    expect((await test.call("PATCH", `${sandboxesPath}/kept?${dry}`, patch, merge)).body).toMatchObject(expected);
    const stale = { metadata: { resourceVersion: "1" }, ...patch };
    expect((await test.call("PATCH", `${sandboxesPath}/kept?${dry}`, stale, merge)).code).toBe(409);
    expect((await test.call("GET", `${sandboxesPath}/kept`)).body).toEqual(body);
    expect(await revision()).toBe(before);
  });

  it("of a delete, asked in the query or in the body, deletes nothing", async () => {
    await test.call("POST", podsPath, podObject("kept"));
    const before = await revision();
    expect((await test.call("DELETE", `${podsPath}/kept?${dry}`)).code).toBe(200);
    expect((await test.call("DELETE", `${podsPath}/kept`, { dryRun: ["All"] })).code).toBe(200);
    expect((await test.call("DELETE", podsPath, { dryRun: ["All"] })).body.items).toHaveLength(1);
    expect((await test.call("DELETE", `${podsPath}/kept`, { dryRun: ["All"], preconditions: { uid: "x" } })).code).toBe(
      409,
    );
    expect((await test.call("GET", `${podsPath}/kept`)).body.metadata).not.toHaveProperty("deletionTimestamp");
    expect(await revision()).toBe(before);
  });

  it.each([
    ["?dryRun=", undefined, 422],
    ["?dryRun=&dryRun=All", undefined, 422],
    ["", { dryRun: "All" }, 400],
    ["", { dryRun: [true] }, 400],
    ["", { kind: "Pod", apiVersion: "v1" }, 400],
  ])("deletes nothing where options are no options: %s %j", async (query, options, code) => {
    await test.call("POST", secretsPath, secretObject("wanted"));
    for (const path of [`${secretsPath}/wanted`, secretsPath]) {
      expect((await test.call("DELETE", `${path}${query}`, options)).code).toBe(code);
    }
    expect((await test.call("GET", `${secretsPath}/wanted`)).code).toBe(200);
  });

  it("takes a null member of options for an absent one", async () => {
    await test.call("POST", secretsPath, secretObject("nulls"));
    const options = { orphanDependents: false, propagationPolicy: null, dryRun: null, preconditions: null };
    expect((await test.call("DELETE", `${secretsPath}/nulls`, options)).code).toBe(200);
  });

  it("of another kind is refused, and nothing is done", async () => {
    const answer = await test.call("POST", `${secretsPath}?dryRun=Server`, secretObject("x"));
    expect(answer).toMatchObject({
      code: 422,
      body: { details: { kind: "CreateOptions", causes: [{ field: "dryRun", reason: "FieldValueNotSupported" }] } },
    });
    expect((await test.call("GET", `${secretsPath}/x`)).code).toBe(404);
  });
});

describe("members that no schema knows", () => {
  const odd = (name: string) => sandboxObject(name, { operatingModus: "Running" });
  const complaint = 'unknown field "spec.operatingModus"';

  it("are dropped with a warning unless the caller says otherwise", async () => {
    const made = await test.exchange("POST", sandboxesPath, odd("warned"));
    expect(made.code).toBe(201);
    expect(made.headers.warning).toBe(`299 - ${JSON.stringify(complaint)}`);
    expect(made.body.spec).not.toHaveProperty("operatingModus");
    const silent = await test.exchange("POST", `${sandboxesPath}?fieldValidation=Ignore`, odd("ignored"));
    expect([silent.code, silent.headers.warning]).toEqual([201, undefined]);
    expect((await test.exchange("POST", sandboxesPath, sandboxObject("plain"))).headers.warning).toBeUndefined();
  });

  it("are refused where the caller asks for strictness, in each kind of write", async () => {
    const strict = "fieldValidation=Strict";
    const created = await test.call("POST", `${sandboxesPath}?${strict}`, odd("strict"));
    expect(created).toMatchObject({ code: 400, body: { message: expect.stringContaining(complaint) } });
    await test.call("POST", sandboxesPath, sandboxObject("strict"));
    const patch = { spec: { operatingModus: "x" } };
    expect(await test.call("PATCH", `${sandboxesPath}/strict?${strict}`, patch, merge)).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field: "patch", message: expect.stringContaining(complaint) }] } },
    });
    const add = [{ op: "add", path: "/spec/operatingModus", value: "x" }];
    expect((await test.call("PATCH", `${sandboxesPath}/strict?${strict}`, add, jsonPatch)).code).toBe(422);
    expect((await test.call("GET", `${sandboxesPath}/strict`)).body.metadata.generation).toBe(1);
  });

  it("have three ways, and a fourth is refused", async () => {
    const answer = await test.call("POST", `${sandboxesPath}?fieldValidation=Loose`, sandboxObject("loose"));
    expect(answer).toMatchObject({ code: 422, body: { details: { causes: [{ field: "fieldValidation" }] } } });
  });
});

describe("the form of an answer", () => {
  const accept = (text: string) => ({ accept: text });

  it("is metadata alone where it is asked for, of one, of many and in a watch", async () => {
    await test.call("POST", secretsPath, { ...secretObject("form"), data: { a: "eA==" } });
    const as = (kind: string) => accept(`application/json;as=${kind};g=meta.k8s.io;v=v1,application/json`);
    const one = await test.call("GET", `${secretsPath}/form`, undefined, as("PartialObjectMetadata"));
    expect(one.body).toMatchObject({
      kind: "PartialObjectMetadata",
      apiVersion: "meta.k8s.io/v1",
      metadata: { name: "form" },
    });
    expect(one.body).not.toHaveProperty("data");
    const many = await test.call("GET", `${secretsPath}?limit=1`, undefined, as("PartialObjectMetadataList"));
    expect(many.body).toMatchObject({ kind: "PartialObjectMetadataList", items: [{ kind: "PartialObjectMetadata" }] });
    expect(many.body.metadata.resourceVersion).toMatch(/^\d+$/u);
  });

  it("is refused where the caller takes none that is served", async () => {
    const answer = await test.call("GET", secretsPath, undefined, accept("application/vnd.kubernetes.protobuf"));
    expect(answer).toMatchObject({ code: 406, body: { reason: "NotAcceptable" } });
    const choice = "application/vnd.kubernetes.protobuf, application/json";
    expect((await test.call("GET", secretsPath, undefined, accept(choice))).code).toBe(200);
  });
});

describe("strategic merge patch", () => {
  it("is refused by name for built-in kinds, and as the real server does for custom ones", async () => {
    const strategic = { "content-type": "application/strategic-merge-patch+json" };
    await test.call("POST", secretsPath, secretObject("merged"));
    const answer = await test.call("PATCH", `${secretsPath}/merged`, {}, strategic);
    expect(answer).toMatchObject({
      code: 415,
      body: { message: expect.stringContaining("strategic merge patch is not served") },
    });
    const custom = await test.call("PATCH", `${sandboxesPath}/any`, {}, strategic);
    expect(custom).toMatchObject({
      code: 415,
      body: { message: expect.stringContaining("the body of the request was in an unknown format") },
    });
  });
});

describe("a watch that stands for a list", () => {
  const path = `${secretsPath}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;

  it("gives what there is, then a bookmark that marks its end, then what comes", async () => {
    const names = (await test.call("GET", secretsPath)).body.items.map(
      (item: { metadata: { name: string } }) => item.metadata.name,
    );
    const watch = await test.watch(path);
    expect(await watch.summaries(names.length)).toEqual(names.map((name: string) => `ADDED ${name}`));
    const bookmark = await watch.next();
    expect(bookmark).toMatchObject({
      type: "BOOKMARK",
      object: { metadata: { annotations: { "k8s.io/initial-events-end": "true" }, resourceVersion: await revision() } },
    });
    await test.call("POST", secretsPath, secretObject("later"));
    expect(await watch.summaries(1)).toEqual(["ADDED later"]);
    watch.close();
  });

  it("is refused without resourceVersionMatch, and a match without it", async () => {
    const wrong = `${secretsPath}?watch=true&sendInitialEvents=true`;
    expect((await test.call("GET", wrong)).body.message).toBe(
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    );
    const lone = `${secretsPath}?watch=true&resourceVersionMatch=NotOlderThan`;
    expect((await test.call("GET", lone)).code).toBe(422);
    expect((await test.call("GET", `${secretsPath}?sendInitialEvents=true`)).code).toBe(422);
  });
});
