// A process that holds a store and writes to it until it is killed: pairs of objects, the second of which repeats the
// first's count. Its reports on stdout say what it has been told was written.
import { pino } from "pino";
import { startApiServer } from "../api-server.ts";

const [dataDir = ""] = process.argv.slice(2);
const { api } = await startApiServer({
  dataDir,
  port: 0,
  log: pino({ level: "silent" }),
  history: { changes: 50, bytes: 1e9 },
});
const resource = { group: "", version: "v1", plural: "secrets" };

async function put(name: string, count: number): Promise<void> {
  const labels = { count: String(count) };
  try {
    await api.patch({ resource, namespace: "default", name }, "application/merge-patch+json", { metadata: { labels } });
  } catch {
    await api.create(resource, "default", { apiVersion: "v1", kind: "Secret", metadata: { name, labels } });
  }
}

await api
  .create({ group: "", version: "v1", plural: "namespaces" }, "", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "default" },
  })
  .catch(() => undefined); // there since the last life
const list = await api.list(resource, "default");
const last = list.items.find((item) => item.metadata.name === "first")?.metadata.labels?.count;
for (let count = Number(last ?? 0) + 1; ; count++) {
  await put("first", count);
  await put("second", count);
  process.stdout.write(`${count}\n`);
  if (count % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
}
