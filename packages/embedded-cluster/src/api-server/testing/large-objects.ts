// A process with an API server that holds 40 objects of 1.3 MiB. It sends the path of its kubeconfig, and ends when its
// parent lets go of it.
import { pino } from "pino";
import { startApiServer } from "../api-server.ts";

const [dataDir = ""] = process.argv.slice(2);
const { api, kubeconfigPath } = await startApiServer({ dataDir, port: 0, log: pino({ level: "silent" }) });
const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } };
await api.create({ group: "", version: "v1", plural: "namespaces" }, "", namespace);
const data = { a: "YWFh".repeat(Math.floor((1.3 * 1024 * 1024) / 4)) };
for (let at = 0; at < 40; at++) {
  const object = { apiVersion: "v1", kind: "Secret", metadata: { name: `s${at}` }, data };
  await api.create({ group: "", version: "v1", plural: "secrets" }, "default", object);
}
process.on("disconnect", () => process.exit());
process.send?.(kubeconfigPath);
