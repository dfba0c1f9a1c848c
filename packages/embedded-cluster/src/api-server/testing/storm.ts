// A process that holds a whole cluster (API server, controller, a node without processes) and storms it until it is
// killed: Sandboxes are created, suspended, resumed and deleted without end. Each line on stdout is a fact that the API has
// answered: `VERB NAME UID VERSION`.
import { pino } from "pino";
import { systemClock } from "../../clock.ts";
import { NodeFaultRules } from "../../faults/node-fault-rules.ts";
import { startStandInNode } from "../../memory/stand-in-node.ts";
import type { KubeObject, ObjectRef } from "../../resource-api.ts";
import { sandboxes } from "../../sandbox-controller/names.ts";
import { startSandboxController } from "../../sandbox-controller/sandbox-controller.ts";
import { seed } from "../../seed.ts";
import { startApiServer } from "../api-server.ts";

const [dataDir = "", life = "0"] = process.argv.slice(2);
const log = pino({ level: "silent" });
// A short history, so that it is trimmed in the middle of the storm too.
const { api } = await startApiServer({ dataDir, port: 0, log, history: { changes: 200, bytes: 1e9 } });
await seed(api, "x");
await startSandboxController({ api, log });
await startStandInNode({ api, clock: systemClock, log, rules: new NodeFaultRules(systemClock), auto: true });

const claim = {
  metadata: { name: "disk" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};
const podTemplate = { spec: { containers: [{ name: "agent", image: "x" }] } };
const sandbox = (name: string): KubeObject => ({
  apiVersion: "agents.x-k8s.io/v1beta1",
  kind: "Sandbox",
  metadata: { name },
  spec: { podTemplate, volumeClaimTemplates: [claim] },
});

function say(verb: string, { metadata }: KubeObject): void {
  process.stdout.write(`${verb} ${metadata.name} ${metadata.uid} ${metadata.resourceVersion}\n`);
}

async function storm(lane: number): Promise<void> {
  for (let round = 0; ; round++) {
    const name = `s-${life}-${lane}-${round}`;
    const ref: ObjectRef = { resource: sandboxes, namespace: "default", name };
    const setMode = (operatingMode: string) =>
      api.patch(ref, "application/merge-patch+json", { spec: { operatingMode } });
    const breath = () => new Promise((resolve) => setImmediate(resolve));
    say("created", await api.create(sandboxes, "default", sandbox(name)));
    for (let turn = 0; turn < lane; turn++) await breath();
    say("suspended", await setMode("Suspended"));
    await breath();
    say("resumed", await setMode("Running"));
    if (round % 3 === 2) {
      const asked = await api.get(ref);
      say("deleting", asked);
      const policies = ["Foreground", "Background"] as const;
      await api.delete(ref, { propagationPolicy: policies[lane % 2] ?? "Background" });
      say("deleted", asked);
    } else if (round % 3 === 1) say("suspended", await setMode("Suspended"));
    await breath();
  }
}

await Promise.all([0, 1, 2, 3].map(storm));
