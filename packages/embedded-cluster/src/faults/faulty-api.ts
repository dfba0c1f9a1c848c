import { ApiStatusError } from "../api-status-error.ts";
import { untilAborted } from "../clock.ts";
import type { ObjectRef, ResourceApi, ResourceRef, WatchEvent } from "../resource-api.ts";
import { type Fate, type Later, LostReplyError, LostWatchError, timedOut } from "./fate.ts";
import type { FaultPlan } from "./fault-plan.ts";
import type { FaultedRequest, FaultVerb, Loss } from "./fault-rule.ts";
import type { LateOutcome } from "./faults.ts";

/** The API as one in-process caller sees it: every request passes the fault plan under the caller's name. */
export function faultyApi(api: ResourceApi, plan: FaultPlan, by: string): ResourceApi {
  const pass = <T>(request: FaultedRequest, work: () => Promise<T>): Promise<T> => {
    const fate = plan.decide(request);
    return fate === undefined ? work() : carryOut(fate, plan, work);
  };
  const about = (verb: FaultVerb, ref: ObjectRef, subresource = ""): FaultedRequest => ({
    by,
    verb,
    resource: ref.resource.plural,
    namespace: ref.namespace,
    name: ref.name,
    subresource,
  });
  const aboutAll = (verb: FaultVerb, resource: ResourceRef, namespace = "", name = ""): FaultedRequest => ({
    by,
    verb,
    resource: resource.plural,
    namespace,
    name,
    subresource: "",
  });
  // A request that is held must not change with the caller's object.
  const copied = <T>(value: T): T => (plan.isIdle ? value : structuredClone(value));
  return {
    get: (ref) => pass(about("get", ref), () => api.get(ref)),
    list: (resource, namespace) => pass(aboutAll("list", resource, namespace), () => api.list(resource, namespace)),
    create: (resource, namespace, object) => {
      const sent = copied(object);
      const request = aboutAll("create", resource, namespace, sent.metadata.name);
      return pass(request, () => api.create(resource, namespace, sent));
    },
    patch: (ref, type, body, subresource) => {
      const sent = copied(body);
      return pass(about("patch", ref, subresource), () => api.patch(ref, type, sent, subresource));
    },
    delete: (ref, wish) => pass(about("delete", ref), () => api.delete(ref, wish)),
    bind: (pod, binding) => pass(about("create", pod, "binding"), () => api.bind(pod, binding)),
    watch: (resource, resourceVersion, signal, namespace) => {
      const request = aboutAll("watch", resource, namespace);
      return watched(plan, request, signal, (until) => api.watch(resource, resourceVersion, until, namespace));
    },
  };
}

/** Gives a request its fate. `work` is begun at most once. */
async function carryOut<T>(decided: Fate | Promise<Fate>, plan: FaultPlan, work: () => Promise<T>): Promise<T> {
  const fate = await decided;
  switch (fate.t) {
    case "continue":
      return work();
    case "fail":
      throw fate.error;
    case "dropUnapplied":
      return unanswered(fate.loss, plan);
    case "applyThenDrop":
      await work().catch(() => undefined); // a refusal is lost like any other answer
      return unanswered(fate.loss, plan);
    case "applyLate":
      void landLater(fate.later, work);
      return unanswered(fate.loss, plan);
  }
}

/** Carries a request out when it is due, and tells how that ended. */
export async function landLater(later: Later, work: () => Promise<unknown>): Promise<void> {
  if (!(await later.due)) return;
  later.landed(await work().then(() => ({ code: 200, message: undefined }), outcomeOf));
}

function outcomeOf(error: unknown): LateOutcome {
  if (error instanceof ApiStatusError) return { code: error.code, message: error.message };
  return { code: 500, message: error instanceof Error ? error.message : String(error) };
}

/** An in-process caller has no time limit of its own, so that silence ends when the cluster does. */
async function unanswered(loss: Loss, plan: FaultPlan): Promise<never> {
  if (loss === "timeout") throw timedOut();
  if (loss === "silence") await untilAborted(plan.stopping);
  throw new LostReplyError();
}

async function* watched(
  plan: FaultPlan,
  request: FaultedRequest,
  signal: AbortSignal,
  begin: (until: AbortSignal) => AsyncIterable<WatchEvent>,
): AsyncGenerator<WatchEvent> {
  const decided = plan.decide(request);
  if (decided !== undefined) {
    const fate = await decided;
    if (fate.t === "fail") throw fate.error;
    if (fate.t !== "continue") throw new LostWatchError();
  }
  const open = plan.openWatch(request);
  const until = AbortSignal.any([signal, open.cut]);
  try {
    for await (const event of begin(until)) {
      const wait = open.ready(until);
      if (wait !== undefined) await wait;
      if (until.aborted) break;
      yield event;
    }
  } finally {
    open.close();
  }
  if (open.cut.aborted && !signal.aborted) throw new LostWatchError();
}
