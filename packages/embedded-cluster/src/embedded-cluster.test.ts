import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Answered,
  claimsPath,
  openTestServer,
  podsPath,
  type RawClient,
  rawClient,
  sandboxesPath,
  silent,
} from "./api-server/testing/test-server.ts";
import { DataDirInUseError, type EmbeddedCluster, guestAgentImage, startEmbeddedCluster } from "./index.ts";
import { standIn } from "./local-node/testing/cluster.ts";

const templatePath = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates/default";
const mergePatch = { "content-type": "application/merge-patch+json" };

let dataDir: string;
let cluster: EmbeddedCluster | undefined;
beforeEach(async () => {
  dataDir = join(await mkdtemp(join(tmpdir(), "holdfast-embedded-")), "data");
});
afterEach(async () => {
  await cluster?.stop();
  await rm(join(dataDir, ".."), { recursive: true, force: true });
});

const start = async (): Promise<EmbeddedCluster> => {
  cluster = await startEmbeddedCluster({ dataDir, agent: { ...standIn, image: guestAgentImage }, log: silent });
  return cluster;
};

describe("an embedded cluster", () => {
  it("starts in a private folder, says its relaxations, and refuses a second one there", async () => {
    const { namespace, relaxations, kubeconfigPath } = await start();
    expect(namespace).toBe("default");
    expect(relaxations.length).toBeGreaterThan(1);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    expect((await stat(kubeconfigPath)).mode & 0o777).toBe(0o600);
    await expect(startEmbeddedCluster({ dataDir, agent: standIn, log: silent })).rejects.toThrow(DataDirInUseError);
  });

  it("keeps its address over a restart, so that a kubeconfig in use stays valid", async () => {
    const first = await start();
    await first.stop();
    const second = await start();
    expect(second.url).toBe(first.url);
  });

  it("seeds namespaces and a default template, and never overwrites what was changed", async () => {
    await (await start()).stop();
    const server = await openTestServer({ dataDir });
    const seeded = (await server.call("GET", templatePath)).body;
    const [container] = seeded.spec.podTemplate.spec.containers;
    expect(container).toMatchObject({
      name: "agent",
      image: "holdfast.local/guest-agent:embedded",
      ports: [{ name: "agent", containerPort: 1024 }],
      securityContext: { runAsUser: 1001, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      readinessProbe: { exec: { command: ["/opt/holdfast/node", "/opt/holdfast/agent/ready.mjs"] }, periodSeconds: 30 },
    });
    expect(container.env).toEqual([
      { name: "HOLDFAST_AGENT_TOKEN", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
      { name: "HOLDFAST_AGENT_HOST", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "HOLDFAST_WORKSPACE_ROOT", value: "/workspace" },
      { name: "HOLDFAST_AGENT_SOCKET", value: "/run/holdfast/agent.sock" },
      { name: "HOLDFAST_AGENT_STATE_DIR", value: "/var/lib/holdfast-agent" },
    ]);
    expect(container.volumeMounts).toContainEqual({ name: "agent-state", mountPath: "/var/lib/holdfast-agent" });
    expect(seeded.spec.podTemplate.spec.volumes).toContainEqual({ name: "agent-state", emptyDir: {} });
    expect(seeded.spec.podTemplate.spec).toMatchObject({
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 30,
    });
    expect(seeded.spec.volumeClaimTemplates).toMatchObject([
      { metadata: { name: "workspace" }, spec: { volumeMode: "Filesystem" } },
    ]);
    expect((await server.call("GET", "/api/v1/namespaces")).body.items).toHaveLength(2);

    const change = { spec: { podTemplate: { spec: { terminationGracePeriodSeconds: 99 } } } };
    await server.call("PATCH", templatePath, change, mergePatch);
    await server.server.stop();
    await (await start()).stop();
    cluster = undefined;
    const later = await openTestServer({ dataDir });
    expect((await later.call("GET", templatePath)).body.spec.podTemplate.spec.terminationGracePeriodSeconds).toBe(99);
    await later.server.stop();
  });

  it("runs a Sandbox to Ready, suspends it, and resumes it with its disk, in a pod of another uid", async () => {
    const { kubeconfigPath } = await start();
    const client = rawClient(kubeconfigPath);
    const spec = (await client.call("GET", templatePath)).body.spec;
    const [container] = spec.podTemplate.spec.containers;
    container.readinessProbe = { tcpSocket: { port: 1024 }, periodSeconds: 1 };
    const { podTemplate, volumeClaimTemplates } = spec;
    const object = { metadata: { name: "s" }, spec: { podTemplate, volumeClaimTemplates, service: true } };
    expect(await client.call("POST", sandboxesPath, object)).toMatchObject({ code: 201 });
    const setMode = (operatingMode: string) =>
      client.call("PATCH", `${sandboxesPath}/s`, { spec: { operatingMode } }, mergePatch);

    const first = await ready(client);
    await evalIn(first, 'fs.writeFileSync("/workspace/kept", "from the first pod")');
    await evalIn(first, 'console.log("said by the first pod")');
    const log = async () => (await client.call("GET", `${podsPath}/s/log?tailLines=1`)).body;
    await expect.poll(log).toBe("said by the first pod\n");
    await setMode("Suspended");
    await untilSandbox(client, (sandbox) => has(sandbox, "Suspended", "True"));
    expect((await client.call("GET", `${podsPath}/s`)).code).toBe(404);
    await setMode("Running");
    const second = await ready(client);
    expect(second.uid).not.toBe(first.uid);
    expect(await evalIn(second, 'return fs.readFileSync("/workspace/kept", "utf8")')).toBe("from the first pod");

    await client.call("DELETE", `${sandboxesPath}/s`, { propagationPolicy: "Foreground" });
    await untilSandbox(client, (sandbox) => sandbox === undefined);
    expect((await client.call("GET", claimsPath)).body.items).toEqual([]);
  });
});

describe("the fault knobs of an embedded cluster", () => {
  it("reach its node, its controller and the network alike, and its history can be compacted", async () => {
    const { kubeconfigPath, faults, compact } = await start();
    const client = rawClient(kubeconfigPath);
    const seen = faults.record();
    const taken = faults.node.holdScheduling({ name: "s" });
    const { podTemplate, volumeClaimTemplates } = (await client.call("GET", templatePath)).body.spec;
    podTemplate.spec.containers[0].readinessProbe = { tcpSocket: { port: 1024 }, periodSeconds: 1 };
    await client.call("POST", sandboxesPath, { metadata: { name: "s" }, spec: { podTemplate, volumeClaimTemplates } });
    const scheduled = async () =>
      (await client.call("GET", `${podsPath}/s`)).body.status?.conditions?.find(
        (item: Answered) => item.type === "PodScheduled",
      );
    await expect.poll(scheduled).toMatchObject({ status: "False", reason: "Unschedulable" });
    taken();
    const before = await ready(client);
    expect(new Set(seen.requests.map(({ by }) => by))).toEqual(new Set(["client", "controller", "node"]));

    await faults.node.killContainer({ name: "s" });
    const restarts = async () =>
      (await client.call("GET", `${podsPath}/s`)).body.status.containerStatuses[0].restartCount;
    await expect.poll(restarts).toBe(1);
    expect((await ready(client)).uid).toBe(before.uid);
    compact();
    expect((await client.call("GET", `${podsPath}?resourceVersion=1&resourceVersionMatch=Exact`)).code).toBe(410);
    await faults.node.evict({ name: "s" });
    expect((await client.call("GET", `${podsPath}/s`)).body.status).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
    });
  });

  it("hold nobody up who stops", async () => {
    const { kubeconfigPath, faults, stop } = await start();
    const held = faults.hold({ by: "client", verb: "create" });
    const creating = rawClient(kubeconfigPath)
      .call("POST", podsPath, { metadata: { name: "p" } })
      .then(
        () => "answered",
        () => "cut",
      );
    await held.reached;
    await stop();
    expect(["answered", "cut"]).toContain(await creating);
  });
});

interface ReadyPod {
  readonly uid: string;
  readonly ip: string;
}

/** Waits until the Sandbox is Ready for its current generation, and reads its pod. */
async function ready(client: RawClient): Promise<ReadyPod> {
  await untilSandbox(client, (sandbox) => has(sandbox, "Ready", "True"));
  const { body } = await client.call("GET", `${podsPath}/s`);
  return { uid: body.metadata.uid, ip: body.status.podIP };
}

const has = (sandbox: Answered, type: string, status: string): boolean =>
  (sandbox?.status?.conditions ?? []).some(
    (item: Answered) =>
      item.type === type && item.status === status && item.observedGeneration === sandbox.metadata.generation,
  );

async function untilSandbox(client: RawClient, check: (sandbox: Answered) => boolean): Promise<void> {
  const { body } = await client.call("GET", sandboxesPath);
  if (check(body.items[0])) return;
  const from = body.metadata.resourceVersion;
  const watch = await client.watch(`${sandboxesPath}?watch=true&resourceVersion=${from}&timeoutSeconds=15`);
  try {
    for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
      if (check(event.type === "DELETED" ? undefined : event.object)) return;
    }
  } finally {
    watch.close();
  }
  throw new Error("the Sandbox did not become as awaited");
}

/** Has the stand-in agent run a function body. */
async function evalIn(pod: ReadyPod, body: string): Promise<unknown> {
  const answer = await fetch(`http://${pod.ip}:1024/eval`, { method: "POST", body });
  expect(answer.status).toBe(200);
  return answer.json();
}
