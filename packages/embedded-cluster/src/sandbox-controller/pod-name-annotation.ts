import type { Pass } from "./children.ts";
import { podNameAnnotation, refOf, sandboxes } from "./names.ts";

/** Notes the pod's name on the Sandbox, one more write to it, unless a name stands there already. */
export async function notePodName(pass: Pass, name: string): Promise<void> {
  if ((pass.sandbox.metadata.annotations?.[podNameAnnotation] ?? "") !== "") return;
  await write(pass, name);
}

/** Takes the pod's name off the Sandbox. */
export async function clearPodName(pass: Pass): Promise<void> {
  if (pass.sandbox.metadata.annotations?.[podNameAnnotation] === undefined) return;
  await write(pass, null);
}

async function write(pass: Pass, value: string | null): Promise<void> {
  const ref = refOf(sandboxes, pass.sandbox);
  pass.sandbox = await pass.cluster.api.patch(ref, "application/merge-patch+json", {
    metadata: { annotations: { [podNameAnnotation]: value } },
  });
}
