import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCluster } from "./kube-cluster.ts";
import { clientOf, soon, templateJson } from "./testing/fixtures.ts";
import { json, ScriptedApi, status } from "./testing/scripted-api.ts";

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

async function list(items: readonly unknown[], continueToken?: string) {
  using within = soon();
  api.script((_received, reply) => json(reply, 200, { metadata: { continue: "more" }, items }));
  return await cluster.listTemplates({ limit: 7, continueToken }, within);
}

const named = (name: string, spec: object = templateJson().spec) => ({ ...templateJson(), metadata: { name }, spec });

describe("a page of templates", () => {
  it("is one request, and tells each template's image and whether its disk can be used", async () => {
    const page = await list([named("good"), named("bare", { podTemplate: { spec: { containers: [] } } })], "from here");
    expect(page).toMatchObject({
      templates: [
        { name: "good", image: "agent:1", disk: { usable: true, root: "/home/me" } },
        { name: "bare", image: undefined, disk: { usable: false, why: "there is no volumeClaimTemplates entry" } },
      ],
      continueToken: "more",
    });
    expect(api.received).toHaveLength(1);
    const { url } = api.received[0] ?? { url: new URL("http://none") };
    expect(url.pathname).toBe("/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxtemplates");
    expect(Object.fromEntries(url.searchParams)).toEqual({ limit: "7", continue: "from here" });
  });

  it("tells of one that cannot be read, or whose name no label can hold, why it is of no use", async () => {
    const { templates } = await list([named("broken", {}), named("n".repeat(64)), { metadata: {} }]);
    expect(templates).toMatchObject([
      { name: "broken", disk: { usable: false, why: expect.stringContaining("it cannot be read: spec.podTemplate") } },
      { name: "n".repeat(64), disk: { usable: false, why: expect.stringContaining("longer than 63 characters") } },
    ]);
  });

  it.each([410, 400])("with a token that the cluster answers with %i is PAGE_TOKEN_EXPIRED", async (code) => {
    api.script((_received, reply) => status(reply, code, "Expired"));
    using within = soon();
    const page = cluster.listTemplates({ limit: 7, continueToken: "old" }, within);
    await expect(page).rejects.toMatchObject({ reason: "PAGE_TOKEN_EXPIRED" });
  });
});
