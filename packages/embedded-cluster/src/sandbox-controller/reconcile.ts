import type { Logger } from "pino";
import type { Cluster, Pass } from "./children.ts";
import { reconcileClaims } from "./claim-step.ts";
import { conditionsIn, findCondition } from "./condition-list.ts";
import type { Observed } from "./conditions.ts";
import { isMarkedExpired, markedExpired, shutDown, untilShutdownMs } from "./expiry.ts";
import type { Next } from "./keyed-queue.ts";
import { MultiplePodsError } from "./multiple-pods-error.ts";
import { recordMultiplePods } from "./multiple-pods-event.ts";
import { nameHash } from "./names.ts";
import { reconcilePod } from "./pod-step.ts";
import { readSandboxSpec, type SandboxSpec } from "./sandbox-spec.ts";
import { statusAfter, statusOf, writeStatus } from "./sandbox-status.ts";
import { reconcileService } from "./service-step.ts";

/** The pause before the pass that follows a mark of expiry. */
const atOnceMs = 1;

/** One pass over one Sandbox: claims, pod, Service, status; or expiry. Throws what went wrong, after the status is written. */
export async function reconcile(
  cluster: Cluster,
  namespace: string,
  name: string,
  now: () => Date,
  log: Logger,
): Promise<Next> {
  const sandbox = cluster.sandboxes.get(namespace, name);
  // A Sandbox that is being deleted is left to the garbage collector.
  if (sandbox === undefined || sandbox.metadata.deletionTimestamp !== undefined) return undefined;
  const spec = readSandboxSpec(sandbox);
  const pass: Pass = { cluster, sandbox, hash: nameHash(name) };
  if (untilShutdownMs(spec, now().getTime()) === 0) return expire(pass, spec, now);

  const before = statusOf(sandbox);
  const observed: Observed = { sandbox, spec, ...(await reconcileChildren(pass, spec)) };
  const { podError, errors } = observed;
  const after = statusAfter(before, observed, pass.hash, stamp(now()));
  if (
    podError instanceof MultiplePodsError &&
    findCondition(conditionsIn(before), "Ready")?.reason !== "MultiplePods"
  ) {
    await recordMultiplePods(pass, podError, now()).catch((error: unknown) =>
      log.warn({ err: error, name }, "event not written"),
    );
  }
  await writeStatus(pass, before, after);

  // Which pod is meant is for people to decide: trying again would not help.
  const failures = errors.filter((error) => !(error instanceof MultiplePodsError));
  if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures);
  const left = untilShutdownMs(spec, now().getTime());
  return left === undefined ? undefined : { againAfterMs: Math.max(left, atOnceMs) };
}

// A failing step does not stop the next: a pod is made, naming its claim, even when the claim could not be. Only an
// ambiguous pod keeps the Service untouched.
async function reconcileChildren(pass: Pass, spec: SandboxSpec): Promise<Omit<Observed, "sandbox" | "spec">> {
  const claimStep = await settle(reconcileClaims(pass, spec));
  const podStep = await settle(reconcilePod(pass, spec));
  const isAmbiguous = podStep.error instanceof MultiplePodsError;
  const untouched = { value: undefined, error: undefined };
  const serviceStep = isAmbiguous ? untouched : await settle(reconcileService(pass, spec));
  const errors = [claimStep.error, podStep.error, serviceStep.error].filter((error) => error !== undefined);
  const isServiceKnown = !isAmbiguous && serviceStep.error === undefined;
  return { pod: podStep.value, podError: podStep.error, service: serviceStep.value, isServiceKnown, errors };
}

async function settle<T>(step: Promise<T>): Promise<{ value: T | undefined; error: unknown }> {
  try {
    return { value: await step, error: undefined };
  } catch (error) {
    return { value: undefined, error };
  }
}

async function expire(pass: Pass, spec: SandboxSpec, now: () => Date): Promise<Next> {
  const before = statusOf(pass.sandbox);
  if (!isMarkedExpired(before)) {
    await writeStatus(pass, before, markedExpired(pass, before, stamp(now())));
    return { againAfterMs: atOnceMs };
  }
  const after = await shutDown(pass, spec, before);
  if (after !== "deleted") await writeStatus(pass, before, after);
  return undefined;
}

/** Whole seconds, as the API writes times. */
function stamp(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}
