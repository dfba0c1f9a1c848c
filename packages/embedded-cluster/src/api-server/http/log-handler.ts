import { listIn, stringIn, valueAt } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { badRequest, notServed } from "../refusals.ts";
import type { ApiRequest } from "./api-request.ts";
import type { HandlerContext } from "./handlers.ts";
import { integerOf, isTrue } from "./query.ts";
import type { Reply } from "./reply.ts";
import { type Route, refuseMethod } from "./route.ts";

/** The output that the node keeps of a container; undefined where it keeps none (yet). */
export type ReadLog = (podUid: string, container: string) => Promise<Buffer | undefined>;

/** What needs more than the bytes, which is all that the node keeps. */
const unserved = ["follow", "previous", "timestamps"] as const;
const unservedTimes = ["sinceSeconds", "sinceTime"] as const;

/** Answers what a container has printed, as far as the node keeps it: the last mebibyte or two. */
export async function handleLog(
  { registry, readLog }: HandlerContext,
  route: Extract<Route, { t: "log" }>,
  request: ApiRequest,
): Promise<Reply> {
  if (request.method !== "GET") return refuseMethod();
  if (readLog === undefined) throw notServed(request.path);
  const { query } = request;
  const asked = [
    ...unserved.filter((name) => isTrue(query.get(name))),
    ...unservedTimes.filter((name) => query.has(name)),
  ];
  if (asked.length > 0) throw badRequest(`${asked.join(", ")} of a log is not served by the embedded cluster`);
  const [tail, limit] = [integerOf(query, "tailLines"), integerOf(query, "limitBytes")];
  const pod = registry.get(route);
  const container = containerOf(pod, query.get("container") ?? "");
  const bytes = await readLog(pod.metadata.uid ?? "", container);
  if (bytes === undefined) throw badRequest(whyNone(pod, container));
  const shown = tail === undefined || tail < 0 ? bytes : lastLines(bytes, tail);
  const body = limit === undefined || limit <= 0 ? shown : shown.subarray(0, limit);
  return { code: 200, contentType: "text/plain", body };
}

function containerOf(pod: KubeObject, asked: string): string {
  const names = ["initContainers", "containers"].flatMap((member) =>
    listIn(pod.spec, member).map((container) => stringIn(container, "name") ?? ""),
  );
  const { name } = pod.metadata;
  if (asked === "") {
    if (names.length === 1) return names[0] ?? "";
    throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(" ")}]`);
  }
  if (!names.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`);
  return asked;
}

function whyNone(pod: KubeObject, container: string): string {
  const statuses = ["initContainerStatuses", "containerStatuses"].flatMap((member) => listIn(pod.status, member));
  const status = statuses.find((item) => stringIn(item, "name") === container);
  const reason = valueAt(status, "state.waiting.reason");
  return `container "${container}" in pod "${pod.metadata.name}" is waiting to start: ${typeof reason === "string" ? reason : "ContainerCreating"}`;
}

function lastLines(bytes: Buffer, count: number): Buffer {
  const newline = 0x0a;
  let from = bytes.at(-1) === newline ? bytes.length - 1 : bytes.length;
  if (count === 0) return Buffer.alloc(0);
  for (let left = count; left > 0 && from >= 0; left--) from = from === 0 ? -1 : bytes.lastIndexOf(newline, from - 1);
  return bytes.subarray(from + 1);
}
